"""pyeureka: one method per request (JSON, `requests`); the caller beats, and registers again when told to."""

from pyeureka import EurekaClient
from pyeureka.client import EurekaInstanceDoesNotExistException

import line_protocol as protocol

BASE = "/eureka"
if not protocol.EUREKA_URL.endswith(BASE):
    protocol.give_up("pyeureka knows only servers whose API is under " + BASE)

client = EurekaClient(
    protocol.EUREKA_URL[: -len(BASE)],
    {
        "instanceId": protocol.INSTANCE_ID,
        "hostName": protocol.HOST_NAME,
        "app": protocol.APP,
        "ipAddr": "127.0.0.1",
        "vipAddress": protocol.APP.lower(),
        "secureVipAddress": protocol.APP.lower(),
        "homePageUrl": protocol.HOME,
        "statusPageUrl": protocol.HOME + "info",
        "healthCheckUrl": protocol.HOME + "health",
        "port": protocol.INSTANCE_PORT,
        "leaseInfo": {
            "renewalIntervalInSecs": protocol.RENEW_SECS,
            "durationInSecs": protocol.LEASE_SECS,
        },
    },
)
registry = {}
loops = []


def start():
    client.register()
    fetch()
    loops.append(protocol.Loop(protocol.RENEW_SECS, renew))
    loops.append(protocol.Loop(protocol.FETCH_SECS, fetch))


def renew():
    try:
        client.heartbeat()
    except EurekaInstanceDoesNotExistException:
        client.register()


def fetch():
    global registry
    applications = client.query()["applications"]["application"]
    registry = {application["name"]: application["instance"] for application in applications}


def find(app):
    return len(registry.get(app.upper(), []))


def status(word):
    if word == "OUT_OF_SERVICE":
        client.take_instance_out_of_service()
    elif word == "UP":
        client.put_instance_back_into_service()
    else:
        raise protocol.Unsupported("the client sets OUT_OF_SERVICE and UP only")


def leave():
    for loop in loops:
        loop.stop()
    client.deregister()


protocol.serve(start, find, status, leave)
