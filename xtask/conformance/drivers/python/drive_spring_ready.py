"""spring-ready-python: its registry thread renews; its discovery asks the server for one application (JSON)."""

from spring_ready.eureka import EurekaRegistry, InstanceInfo, InstanceStatus, ServiceDiscovery
from spring_ready.exceptions import EurekaInstanceNotFoundError, ServiceDiscoveryError

import line_protocol as protocol

instance = InstanceInfo.create(
    protocol.APP,
    instance_id=protocol.INSTANCE_ID,
    host_name=protocol.HOST_NAME,
    ip_addr="127.0.0.1",
    port=protocol.INSTANCE_PORT,
    metadata={"lang": "python"},
    prefer_ip_address=False,
)
instance.lease_info.renewal_interval_in_secs = protocol.RENEW_SECS
instance.lease_info.duration_in_secs = protocol.LEASE_SECS
registry = EurekaRegistry([protocol.EUREKA_URL], instance)
discovery = ServiceDiscovery(registry.client)


def find(app):
    try:
        return len(discovery.get_instances(app, only_up=False))
    except ServiceDiscoveryError as error:
        # An application without instances is an error to this client, and its own words are the only sign of it.
        if isinstance(error.__cause__, EurekaInstanceNotFoundError) or "No instances found" in str(error):
            return 0
        raise


def status(word):
    # The client logs a refusal and carries on, so what the server made of it shows only in the server.
    registry.update_status(InstanceStatus[word])


protocol.serve(registry.start, find, status, registry.shutdown)
