"""py-eureka-client: its own heartbeat thread renews and reads deltas (XML), both at the renewal interval."""

import asyncio
import threading

from py_eureka_client import eureka_client

import line_protocol as protocol

beating = threading.Lock()
leaving = False
errors = []


class Client(eureka_client.EurekaClient):
    """The heartbeat thread outlives `stop()` and would register again, so heartbeats end before the client leaves."""

    async def send_heartbeat(self, overridden_status=""):
        with beating:
            if not leaving:
                await super().send_heartbeat(overridden_status)


client = Client(
    eureka_server=protocol.EUREKA_URL,
    app_name=protocol.APP,
    instance_id=protocol.INSTANCE_ID,
    instance_host=protocol.HOST_NAME,
    instance_ip="127.0.0.1",
    instance_port=protocol.INSTANCE_PORT,
    vip_adr=protocol.APP.lower(),
    renewal_interval_in_secs=protocol.RENEW_SECS,
    duration_in_secs=protocol.LEASE_SECS,
    metadata={"lang": "python"},
    on_error=lambda kind, error: errors.append("%s: %r" % (kind, error)),
)
loop = asyncio.new_event_loop()


def checked(work):
    """The client reports a failure to `on_error` and carries on; here it is an error."""
    errors.clear()
    loop.run_until_complete(work)
    if errors:
        raise RuntimeError("; ".join(errors))


def find(app):
    application = client.applications.get_application(app)
    return len(application.instances) if application else 0


def status(word):
    with beating:
        checked(client.status_update(word))


def leave():
    global leaving
    with beating:
        leaving = True
    checked(client.stop())


protocol.serve(lambda: checked(client.start()), find, status, leave)
