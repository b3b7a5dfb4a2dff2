from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STATUS_UNSPECIFIED: _ClassVar[Status]
    STATUS_UP: _ClassVar[Status]
    STATUS_DOWN: _ClassVar[Status]
    STATUS_STARTING: _ClassVar[Status]
    STATUS_OUT_OF_SERVICE: _ClassVar[Status]
    STATUS_UNKNOWN: _ClassVar[Status]

class SnapshotReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SNAPSHOT_REASON_UNSPECIFIED: _ClassVar[SnapshotReason]
    SNAPSHOT_REASON_START: _ClassVar[SnapshotReason]
    SNAPSHOT_REASON_OTHER_SERVER: _ClassVar[SnapshotReason]
    SNAPSHOT_REASON_TOO_OLD: _ClassVar[SnapshotReason]

class Action(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACTION_UNSPECIFIED: _ClassVar[Action]
    ACTION_ADDED: _ClassVar[Action]
    ACTION_MODIFIED: _ClassVar[Action]
    ACTION_DELETED: _ClassVar[Action]

class Author(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AUTHOR_UNSPECIFIED: _ClassVar[Author]
    AUTHOR_CLIENT: _ClassVar[Author]
    AUTHOR_PEER: _ClassVar[Author]
    AUTHOR_OPERATOR: _ClassVar[Author]
    AUTHOR_OWN: _ClassVar[Author]
    AUTHOR_EVICTION: _ClassVar[Author]

class Cause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CAUSE_UNSPECIFIED: _ClassVar[Cause]
    CAUSE_REGISTERED: _ClassVar[Cause]
    CAUSE_RENEWED: _ClassVar[Cause]
    CAUSE_CANCELLED: _ClassVar[Cause]
    CAUSE_EXPIRED: _ClassVar[Cause]
    CAUSE_OVERRIDDEN: _ClassVar[Cause]
    CAUSE_OVERRIDE_CLEARED: _ClassVar[Cause]
    CAUSE_METADATA_CHANGED: _ClassVar[Cause]
    CAUSE_ADOPTED: _ClassVar[Cause]
    CAUSE_FILTERED: _ClassVar[Cause]

class RenewalOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RENEWAL_OUTCOME_UNSPECIFIED: _ClassVar[RenewalOutcome]
    RENEWAL_OUTCOME_RENEWED: _ClassVar[RenewalOutcome]
    RENEWAL_OUTCOME_NOT_REGISTERED: _ClassVar[RenewalOutcome]
    RENEWAL_OUTCOME_CONTENT_OUTDATED: _ClassVar[RenewalOutcome]
STATUS_UNSPECIFIED: Status
STATUS_UP: Status
STATUS_DOWN: Status
STATUS_STARTING: Status
STATUS_OUT_OF_SERVICE: Status
STATUS_UNKNOWN: Status
SNAPSHOT_REASON_UNSPECIFIED: SnapshotReason
SNAPSHOT_REASON_START: SnapshotReason
SNAPSHOT_REASON_OTHER_SERVER: SnapshotReason
SNAPSHOT_REASON_TOO_OLD: SnapshotReason
ACTION_UNSPECIFIED: Action
ACTION_ADDED: Action
ACTION_MODIFIED: Action
ACTION_DELETED: Action
AUTHOR_UNSPECIFIED: Author
AUTHOR_CLIENT: Author
AUTHOR_PEER: Author
AUTHOR_OPERATOR: Author
AUTHOR_OWN: Author
AUTHOR_EVICTION: Author
CAUSE_UNSPECIFIED: Cause
CAUSE_REGISTERED: Cause
CAUSE_RENEWED: Cause
CAUSE_CANCELLED: Cause
CAUSE_EXPIRED: Cause
CAUSE_OVERRIDDEN: Cause
CAUSE_OVERRIDE_CLEARED: Cause
CAUSE_METADATA_CHANGED: Cause
CAUSE_ADOPTED: Cause
CAUSE_FILTERED: Cause
RENEWAL_OUTCOME_UNSPECIFIED: RenewalOutcome
RENEWAL_OUTCOME_RENEWED: RenewalOutcome
RENEWAL_OUTCOME_NOT_REGISTERED: RenewalOutcome
RENEWAL_OUTCOME_CONTENT_OUTDATED: RenewalOutcome

class Instance(_message.Message):
    __slots__ = ("app", "instance_id", "host_name", "ip_address", "status", "overridden_status", "port", "secure_port", "vip_address", "secure_vip_address", "metadata", "lease_terms", "data_center", "app_group", "home_page_url", "status_page_url", "health_check_url", "secure_health_check_url", "asg_name", "country_id", "sid", "last_dirty_unix_ms", "lease_times")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    APP_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    HOST_NAME_FIELD_NUMBER: _ClassVar[int]
    IP_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    OVERRIDDEN_STATUS_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    SECURE_PORT_FIELD_NUMBER: _ClassVar[int]
    VIP_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    SECURE_VIP_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    LEASE_TERMS_FIELD_NUMBER: _ClassVar[int]
    DATA_CENTER_FIELD_NUMBER: _ClassVar[int]
    APP_GROUP_FIELD_NUMBER: _ClassVar[int]
    HOME_PAGE_URL_FIELD_NUMBER: _ClassVar[int]
    STATUS_PAGE_URL_FIELD_NUMBER: _ClassVar[int]
    HEALTH_CHECK_URL_FIELD_NUMBER: _ClassVar[int]
    SECURE_HEALTH_CHECK_URL_FIELD_NUMBER: _ClassVar[int]
    ASG_NAME_FIELD_NUMBER: _ClassVar[int]
    COUNTRY_ID_FIELD_NUMBER: _ClassVar[int]
    SID_FIELD_NUMBER: _ClassVar[int]
    LAST_DIRTY_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    LEASE_TIMES_FIELD_NUMBER: _ClassVar[int]
    app: str
    instance_id: str
    host_name: str
    ip_address: str
    status: Status
    overridden_status: Status
    port: Port
    secure_port: Port
    vip_address: str
    secure_vip_address: str
    metadata: _containers.ScalarMap[str, str]
    lease_terms: LeaseTerms
    data_center: DataCenter
    app_group: str
    home_page_url: str
    status_page_url: str
    health_check_url: str
    secure_health_check_url: str
    asg_name: str
    country_id: int
    sid: str
    last_dirty_unix_ms: int
    lease_times: LeaseTimes
    def __init__(self, app: _Optional[str] = ..., instance_id: _Optional[str] = ..., host_name: _Optional[str] = ..., ip_address: _Optional[str] = ..., status: _Optional[_Union[Status, str]] = ..., overridden_status: _Optional[_Union[Status, str]] = ..., port: _Optional[_Union[Port, _Mapping]] = ..., secure_port: _Optional[_Union[Port, _Mapping]] = ..., vip_address: _Optional[str] = ..., secure_vip_address: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., lease_terms: _Optional[_Union[LeaseTerms, _Mapping]] = ..., data_center: _Optional[_Union[DataCenter, _Mapping]] = ..., app_group: _Optional[str] = ..., home_page_url: _Optional[str] = ..., status_page_url: _Optional[str] = ..., health_check_url: _Optional[str] = ..., secure_health_check_url: _Optional[str] = ..., asg_name: _Optional[str] = ..., country_id: _Optional[int] = ..., sid: _Optional[str] = ..., last_dirty_unix_ms: _Optional[int] = ..., lease_times: _Optional[_Union[LeaseTimes, _Mapping]] = ...) -> None: ...

class Port(_message.Message):
    __slots__ = ("number", "enabled")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    number: int
    enabled: bool
    def __init__(self, number: _Optional[int] = ..., enabled: _Optional[bool] = ...) -> None: ...

class LeaseTerms(_message.Message):
    __slots__ = ("renewal_interval_secs", "duration_secs")
    RENEWAL_INTERVAL_SECS_FIELD_NUMBER: _ClassVar[int]
    DURATION_SECS_FIELD_NUMBER: _ClassVar[int]
    renewal_interval_secs: int
    duration_secs: int
    def __init__(self, renewal_interval_secs: _Optional[int] = ..., duration_secs: _Optional[int] = ...) -> None: ...

class DataCenter(_message.Message):
    __slots__ = ("name", "amazon")
    class AmazonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    AMAZON_FIELD_NUMBER: _ClassVar[int]
    name: str
    amazon: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., amazon: _Optional[_Mapping[str, str]] = ...) -> None: ...

class LeaseTimes(_message.Message):
    __slots__ = ("registered_unix_ms", "renewed_unix_ms", "service_up_unix_ms", "last_updated_unix_ms")
    REGISTERED_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    RENEWED_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    SERVICE_UP_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_UPDATED_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    registered_unix_ms: int
    renewed_unix_ms: int
    service_up_unix_ms: int
    last_updated_unix_ms: int
    def __init__(self, registered_unix_ms: _Optional[int] = ..., renewed_unix_ms: _Optional[int] = ..., service_up_unix_ms: _Optional[int] = ..., last_updated_unix_ms: _Optional[int] = ...) -> None: ...

class RegisterRequest(_message.Message):
    __slots__ = ("instance",)
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    instance: Instance
    def __init__(self, instance: _Optional[_Union[Instance, _Mapping]] = ...) -> None: ...

class RegisterResponse(_message.Message):
    __slots__ = ("kept_newer",)
    KEPT_NEWER_FIELD_NUMBER: _ClassVar[int]
    kept_newer: bool
    def __init__(self, kept_newer: _Optional[bool] = ...) -> None: ...

class RenewRequest(_message.Message):
    __slots__ = ("renewal",)
    RENEWAL_FIELD_NUMBER: _ClassVar[int]
    renewal: Renewal
    def __init__(self, renewal: _Optional[_Union[Renewal, _Mapping]] = ...) -> None: ...

class RenewResponse(_message.Message):
    __slots__ = ("content_outdated",)
    CONTENT_OUTDATED_FIELD_NUMBER: _ClassVar[int]
    content_outdated: bool
    def __init__(self, content_outdated: _Optional[bool] = ...) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("app", "instance_id")
    APP_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    app: str
    instance_id: str
    def __init__(self, app: _Optional[str] = ..., instance_id: _Optional[str] = ...) -> None: ...

class CancelResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SetStatusRequest(_message.Message):
    __slots__ = ("app", "instance_id", "status", "last_dirty_unix_ms")
    APP_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    LAST_DIRTY_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    app: str
    instance_id: str
    status: Status
    last_dirty_unix_ms: int
    def __init__(self, app: _Optional[str] = ..., instance_id: _Optional[str] = ..., status: _Optional[_Union[Status, str]] = ..., last_dirty_unix_ms: _Optional[int] = ...) -> None: ...

class SetStatusResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ClearStatusRequest(_message.Message):
    __slots__ = ("app", "instance_id", "status", "last_dirty_unix_ms")
    APP_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    LAST_DIRTY_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    app: str
    instance_id: str
    status: Status
    last_dirty_unix_ms: int
    def __init__(self, app: _Optional[str] = ..., instance_id: _Optional[str] = ..., status: _Optional[_Union[Status, str]] = ..., last_dirty_unix_ms: _Optional[int] = ...) -> None: ...

class ClearStatusResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class UpdateMetadataRequest(_message.Message):
    __slots__ = ("app", "instance_id", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    APP_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    app: str
    instance_id: str
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, app: _Optional[str] = ..., instance_id: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class UpdateMetadataResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetInstanceRequest(_message.Message):
    __slots__ = ("app", "instance_id")
    APP_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    app: str
    instance_id: str
    def __init__(self, app: _Optional[str] = ..., instance_id: _Optional[str] = ...) -> None: ...

class GetInstanceResponse(_message.Message):
    __slots__ = ("instance",)
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    instance: Instance
    def __init__(self, instance: _Optional[_Union[Instance, _Mapping]] = ...) -> None: ...

class GetApplicationRequest(_message.Message):
    __slots__ = ("app",)
    APP_FIELD_NUMBER: _ClassVar[int]
    app: str
    def __init__(self, app: _Optional[str] = ...) -> None: ...

class GetApplicationResponse(_message.Message):
    __slots__ = ("application", "cursor")
    APPLICATION_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    application: Application
    cursor: str
    def __init__(self, application: _Optional[_Union[Application, _Mapping]] = ..., cursor: _Optional[str] = ...) -> None: ...

class Application(_message.Message):
    __slots__ = ("name", "instances")
    NAME_FIELD_NUMBER: _ClassVar[int]
    INSTANCES_FIELD_NUMBER: _ClassVar[int]
    name: str
    instances: _containers.RepeatedCompositeFieldContainer[Instance]
    def __init__(self, name: _Optional[str] = ..., instances: _Optional[_Iterable[_Union[Instance, _Mapping]]] = ...) -> None: ...

class ListApplicationsRequest(_message.Message):
    __slots__ = ("filter", "page_size", "page_token")
    FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    filter: str
    page_size: int
    page_token: str
    def __init__(self, filter: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListApplicationsResponse(_message.Message):
    __slots__ = ("applications", "next_page_token", "cursor")
    APPLICATIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    applications: _containers.RepeatedCompositeFieldContainer[Application]
    next_page_token: str
    cursor: str
    def __init__(self, applications: _Optional[_Iterable[_Union[Application, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., cursor: _Optional[str] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("cursor", "filter")
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    cursor: str
    filter: str
    def __init__(self, cursor: _Optional[str] = ..., filter: _Optional[str] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("cursor", "snapshot_begin", "snapshot_page", "snapshot_end", "change", "heartbeat")
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_BEGIN_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_PAGE_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_END_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    cursor: str
    snapshot_begin: SnapshotBegin
    snapshot_page: SnapshotPage
    snapshot_end: SnapshotEnd
    change: Change
    heartbeat: Heartbeat
    def __init__(self, cursor: _Optional[str] = ..., snapshot_begin: _Optional[_Union[SnapshotBegin, _Mapping]] = ..., snapshot_page: _Optional[_Union[SnapshotPage, _Mapping]] = ..., snapshot_end: _Optional[_Union[SnapshotEnd, _Mapping]] = ..., change: _Optional[_Union[Change, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ...) -> None: ...

class SnapshotBegin(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: SnapshotReason
    def __init__(self, reason: _Optional[_Union[SnapshotReason, str]] = ...) -> None: ...

class SnapshotPage(_message.Message):
    __slots__ = ("instances",)
    INSTANCES_FIELD_NUMBER: _ClassVar[int]
    instances: _containers.RepeatedCompositeFieldContainer[Instance]
    def __init__(self, instances: _Optional[_Iterable[_Union[Instance, _Mapping]]] = ...) -> None: ...

class SnapshotEnd(_message.Message):
    __slots__ = ("instances",)
    INSTANCES_FIELD_NUMBER: _ClassVar[int]
    instances: int
    def __init__(self, instances: _Optional[int] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Change(_message.Message):
    __slots__ = ("action", "instance", "at_unix_ms", "author", "peer", "cause")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    AT_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    action: Action
    instance: Instance
    at_unix_ms: int
    author: Author
    peer: str
    cause: Cause
    def __init__(self, action: _Optional[_Union[Action, str]] = ..., instance: _Optional[_Union[Instance, _Mapping]] = ..., at_unix_ms: _Optional[int] = ..., author: _Optional[_Union[Author, str]] = ..., peer: _Optional[str] = ..., cause: _Optional[_Union[Cause, str]] = ...) -> None: ...

class Renewal(_message.Message):
    __slots__ = ("app", "instance_id", "last_dirty_unix_ms")
    APP_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_DIRTY_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    app: str
    instance_id: str
    last_dirty_unix_ms: int
    def __init__(self, app: _Optional[str] = ..., instance_id: _Optional[str] = ..., last_dirty_unix_ms: _Optional[int] = ...) -> None: ...

class KeepAliveRequest(_message.Message):
    __slots__ = ("renewals",)
    RENEWALS_FIELD_NUMBER: _ClassVar[int]
    renewals: _containers.RepeatedCompositeFieldContainer[Renewal]
    def __init__(self, renewals: _Optional[_Iterable[_Union[Renewal, _Mapping]]] = ...) -> None: ...

class KeepAliveResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[RenewalResult]
    def __init__(self, results: _Optional[_Iterable[_Union[RenewalResult, _Mapping]]] = ...) -> None: ...

class RenewalResult(_message.Message):
    __slots__ = ("app", "instance_id", "outcome")
    APP_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    app: str
    instance_id: str
    outcome: RenewalOutcome
    def __init__(self, app: _Optional[str] = ..., instance_id: _Optional[str] = ..., outcome: _Optional[_Union[RenewalOutcome, str]] = ...) -> None: ...
