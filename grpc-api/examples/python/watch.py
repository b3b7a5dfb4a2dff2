"""Follows what is registered.

    python watch.py --servers 127.0.0.1:9761 --filter 'app == ORDERS'

Keeps a copy of the instances that the filter selects, and prints every change of it. When the connection breaks it goes on
where it was, at this server or another one.
"""

import argparse
import sys
import time

import grpc
from eureka.v1 import registry_pb2 as pb
from eureka.v1 import registry_pb2_grpc

from registry import connect, explain, pause


class Copy:
    """The instances that a filter selects, by application and id, as of `cursor`."""

    def __init__(self, filter="", cursor=""):
        self.filter = filter
        self.cursor = cursor
        self.instances = {}
        self._incoming = {}

    def follow(self, registry):
        """Takes over what one stream tells, until it ends."""
        for answer in registry.Watch(pb.WatchRequest(cursor=self.cursor, filter=self.filter)):
            self._take(answer)

    def _take(self, answer):
        match answer.WhichOneof("event"):
            case "snapshot_begin":
                self._incoming = {}
                print("snapshot", pb.SnapshotReason.Name(answer.snapshot_begin.reason), flush=True)
            case "snapshot_page":
                self._incoming |= {key(instance): instance for instance in answer.snapshot_page.instances}
            case "snapshot_end":
                # Only a whole snapshot replaces what was known: a stream may break in the middle of one.
                self.instances = self._incoming
                for instance in self.instances.values():
                    print("there", describe(instance), flush=True)
                print("synced", answer.snapshot_end.instances, answer.cursor, flush=True)
            case "change":
                self._change(answer.change)
        # Within a snapshot there is none: the old one stays valid until the new one is complete.
        if answer.cursor:
            self.cursor = answer.cursor

    def _change(self, change):
        if change.action == pb.ACTION_DELETED:
            self.instances.pop(key(change.instance), None)
        else:
            self.instances[key(change.instance)] = change.instance
        action, cause, author = (
            pb.Action.Name(change.action).removeprefix("ACTION_"),
            pb.Cause.Name(change.cause).removeprefix("CAUSE_"),
            pb.Author.Name(change.author).removeprefix("AUTHOR_"),
        )
        print(action, describe(change.instance), cause, "by", author, flush=True)


def key(instance):
    return instance.app, instance.instance_id


def describe(instance):
    return f"{instance.app}/{instance.instance_id} {pb.Status.Name(instance.status).removeprefix('STATUS_')}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--servers", default="127.0.0.1:9761")
    parser.add_argument("--filter", default="")
    parser.add_argument("--cursor", default="", help="begin after this one, without a snapshot if the server can")
    arguments = parser.parse_args()

    copy = Copy(arguments.filter, arguments.cursor)
    with connect(arguments.servers) as channel:
        registry = registry_pb2_grpc.RegistryStub(channel)
        while True:
            try:
                copy.follow(registry)
            except grpc.RpcError as error:
                # A filter or cursor that is none, or a server that has no such call, will not get better.
                if error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED):
                    sys.exit("error: " + explain(error))
                print("lost", explain(error), flush=True)
                time.sleep(pause(error))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
