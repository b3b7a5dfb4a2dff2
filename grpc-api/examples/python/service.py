"""A service that is registered as long as it runs.

    python service.py --servers 127.0.0.1:9761 --app ORDERS --id orders-1 --port 8080

It registers, renews its lease on one stream, registers again when the server asks for it, and cancels when it is told to
stop (SIGTERM or Ctrl-C).
"""

import argparse
import signal
import sys
import threading
import time

import grpc
from eureka.v1 import registry_pb2 as pb
from eureka.v1 import registry_pb2_grpc

from registry import connect, explain, pause

# The server is not there, stops, or is too busy: what was asked is still right. Anything else is a mistake of ours.
TEMPORARY = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED}


class Lease:
    """Keeps one instance registered."""

    def __init__(self, registry, instance):
        self.registry = registry
        self.instance = instance
        self.registered = False
        self.stopping = threading.Event()

    def hold(self):
        """Returns when `stopping` is set and the instance is cancelled."""
        while not self.stopping.is_set():
            try:
                if not self.registered:
                    self.register()
                self.keep_alive()
            except grpc.RpcError as error:
                if error.code() not in TEMPORARY:
                    raise
                print("trying again:", explain(error), flush=True)
                self.stopping.wait(pause(error))
        self.cancel()

    def register(self):
        self.registry.Register(pb.RegisterRequest(instance=self.instance), timeout=10)
        self.registered = True
        print(f"registered {self.instance.app}/{self.instance.instance_id}", flush=True)

    def keep_alive(self):
        """Renews until the stream ends. On a new stream, perhaps to another server, the first renewal goes out at once."""
        for answer in self.registry.KeepAlive(self.renewals()):
            for result in answer.results:
                if result.outcome != pb.RENEWAL_OUTCOME_RENEWED:
                    print("registering again:", pb.RenewalOutcome.Name(result.outcome), flush=True)
                    self.register()

    def renewals(self):
        renewal = pb.Renewal(
            app=self.instance.app,
            instance_id=self.instance.instance_id,
            last_dirty_unix_ms=self.instance.last_dirty_unix_ms,
        )
        yield pb.KeepAliveRequest(renewals=[renewal])
        while not self.stopping.wait(self.instance.lease_terms.renewal_interval_secs):
            yield pb.KeepAliveRequest(renewals=[renewal])

    def cancel(self):
        """The end of the stream is no cancel: without this the instance stays until its lease runs out."""
        try:
            self.registry.Cancel(
                pb.CancelRequest(app=self.instance.app, instance_id=self.instance.instance_id), timeout=10
            )
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.NOT_FOUND:
                raise
        print(f"cancelled {self.instance.app}/{self.instance.instance_id}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--servers", default="127.0.0.1:9761")
    parser.add_argument("--app", default="ORDERS")
    parser.add_argument("--id", default="orders-1")
    parser.add_argument("--host", default="localhost")
    parser.add_argument("--ip", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--renew", type=int, default=30, metavar="SECONDS")
    parser.add_argument("--lease", type=int, default=90, metavar="SECONDS")
    arguments = parser.parse_args()

    instance = pb.Instance(
        app=arguments.app,
        instance_id=arguments.id,
        host_name=arguments.host,
        ip_address=arguments.ip,
        status=pb.STATUS_UP,
        port=pb.Port(number=arguments.port, enabled=True),
        vip_address=arguments.app.lower(),
        metadata={"language": "python"},
        lease_terms=pb.LeaseTerms(renewal_interval_secs=arguments.renew, duration_secs=arguments.lease),
        # The version of all this. It stays the same as long as the content does, also when it is registered again.
        last_dirty_unix_ms=time.time_ns() // 1_000_000,
    )
    with connect(arguments.servers) as channel:
        lease = Lease(registry_pb2_grpc.RegistryStub(channel), instance)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: lease.stopping.set())
        try:
            lease.hold()
        except grpc.RpcError as error:
            sys.exit("error: " + explain(error))


if __name__ == "__main__":
    main()
