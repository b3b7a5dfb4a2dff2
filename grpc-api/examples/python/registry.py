"""What the programs beside this one share: the channel to the servers, and what an error says."""

import json

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

# Every call of the registry may be tried again, so a unary one that meets a server that is stopping, or too busy, is.
_RETRIES = {
    "methodConfig": [
        {
            "name": [{"service": "eureka.v1.Registry"}],
            "retryPolicy": {
                "maxAttempts": 4,
                "initialBackoff": "0.2s",
                "maxBackoff": "2s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]
}

_OPTIONS = [
    # A connection that died without a word is found out after 20 + 5 seconds, well within a lease.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    # Without this gRPC stops pinging a stream on which nothing is sent.
    ("grpc.http2.max_pings_without_data", 0),
    # gRPC's own default is two minutes: longer than a lease.
    ("grpc.max_reconnect_backoff_ms", 5_000),
    ("grpc.service_config", json.dumps(_RETRIES)),
]


def connect(servers):
    """A channel to the first of `HOST:PORT` or `IP:PORT,IP:PORT,...` that answers; when it fails, to the next one."""
    first, *others = servers.split(",")
    if not others:
        return grpc.insecure_channel(servers, _OPTIONS)
    # The name that requests carry; gRPC would take the whole list, which HTTP/2 servers refuse as malformed.
    return grpc.insecure_channel("ipv4:" + servers, [*_OPTIONS, ("grpc.default_authority", first)])


def explain(error):
    """An error in one line: `NOT_FOUND NOT_REGISTERED: what the server said`."""
    field_texts = [f"{v.field}: {v.description}" for v in details(error, error_details_pb2.BadRequest).field_violations]
    words = [error.code().name, reason(error)]
    said = "; ".join(field_texts) or error.details()
    return " ".join(word for word in words if word) + ": " + said


def reason(error):
    """The reason in `ErrorInfo`, such as `NOT_REGISTERED`; empty if it gives none."""
    return details(error, error_details_pb2.ErrorInfo).reason


def pause(error):
    """How many seconds the server asks to wait (`RetryInfo`); 1 if it does not."""
    asked = details(error, error_details_pb2.RetryInfo).retry_delay
    return asked.seconds + asked.nanos / 1e9 or 1.0


def details(error, kind):
    """The detail of one kind that an error carries; an empty one if there is none."""
    found = kind()
    status = rpc_status.from_call(error)
    for detail in status.details if status else ():
        if detail.Unpack(found):
            break
    return found
