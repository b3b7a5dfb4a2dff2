"""Single calls to the registry.

    python operate.py get ORDERS orders-1
    python operate.py list 'app == ORDERS && status == UP'
    python operate.py status ORDERS orders-1 OUT_OF_SERVICE
    python operate.py clear ORDERS orders-1
    python operate.py metadata ORDERS orders-1 version=2
    python operate.py health
    python operate.py services
"""

import argparse
import sys

import grpc
from eureka.v1 import registry_pb2 as pb
from eureka.v1 import registry_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from registry import connect, explain

# Without a deadline a call waits for ever.
SECONDS = 10


def get(registry, app, id):
    show(registry.GetInstance(pb.GetInstanceRequest(app=app, instance_id=id), timeout=SECONDS).instance)


def list_instances(registry, filter=""):
    token = ""
    while True:
        page = registry.ListApplications(pb.ListApplicationsRequest(filter=filter, page_token=token), timeout=SECONDS)
        for application in page.applications:
            for instance in application.instances:
                show(instance)
        token = page.next_page_token
        if not token:
            return


def set_status(registry, app, id, status):
    # What is no status is sent as unspecified, and the server says so.
    value = dict(pb.Status.items()).get("STATUS_" + status, pb.STATUS_UNSPECIFIED)
    registry.SetStatus(pb.SetStatusRequest(app=app, instance_id=id, status=value), timeout=SECONDS)


def clear_status(registry, app, id):
    # UP until the instance reports something else. Without a status it would be UNKNOWN and have to register again.
    registry.ClearStatus(pb.ClearStatusRequest(app=app, instance_id=id, status=pb.STATUS_UP), timeout=SECONDS)


def update_metadata(registry, app, id, *pairs):
    metadata = dict(pair.split("=", 1) for pair in pairs)
    registry.UpdateMetadata(pb.UpdateMetadataRequest(app=app, instance_id=id, metadata=metadata), timeout=SECONDS)


def show(instance):
    pairs = " ".join(f"{name}={instance.metadata[name]}" for name in sorted(instance.metadata))
    status = pb.Status.Name(instance.status).removeprefix("STATUS_")
    print(f"{instance.app}/{instance.instance_id} {status} {instance.ip_address}:{instance.port.number} {pairs}")


def health(channel):
    """`eureka.v1.Registry` says whether to connect at all, `.../reads` whether lists and watches are answered yet."""
    stub = health_pb2_grpc.HealthStub(channel)
    for service in ("eureka.v1.Registry", "eureka.v1.Registry/reads"):
        answer = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=SECONDS)
        print(service, health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))


def services(channel):
    for name in ProtoReflectionDescriptorDatabase(channel).get_services():
        print(name)


OF_THE_REGISTRY = {
    "get": get,
    "list": list_instances,
    "status": set_status,
    "clear": clear_status,
    "metadata": update_metadata,
}
OF_THE_SERVER = {"health": health, "services": services}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--servers", default="127.0.0.1:9761")
    parser.add_argument("command", choices=[*OF_THE_REGISTRY, *OF_THE_SERVER])
    parser.add_argument("words", nargs="*")
    arguments = parser.parse_args()

    with connect(arguments.servers) as channel:
        try:
            if arguments.command in OF_THE_SERVER:
                OF_THE_SERVER[arguments.command](channel)
            else:
                OF_THE_REGISTRY[arguments.command](registry_pb2_grpc.RegistryStub(channel), *arguments.words)
        except grpc.RpcError as error:
            sys.exit("error: " + explain(error))


if __name__ == "__main__":
    main()
