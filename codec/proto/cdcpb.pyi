from . import errorpb as _errorpb_pb2
from . import kvrpcpb as _kvrpcpb_pb2
from . import metapb as _metapb_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

class ScanPriority:
    SCAN_PRIORITY_UNKNOWN: _ClassVar[int]
    SCAN_PRIORITY_LOW: _ClassVar[int]
    SCAN_PRIORITY_HIGH: _ClassVar[int]

class Header(_message.Message):
    cluster_id: int
    ticdc_version: str
    def __init__(self, cluster_id: _Optional[int] = ..., ticdc_version: _Optional[str] = ...) -> None: ...

class DuplicateRequest(_message.Message):
    region_id: int
    def __init__(self, region_id: _Optional[int] = ...) -> None: ...

class Compatibility(_message.Message):
    required_version: str
    def __init__(self, required_version: _Optional[str] = ...) -> None: ...

class ClusterIDMismatch(_message.Message):
    current: int
    request: int
    def __init__(self, current: _Optional[int] = ..., request: _Optional[int] = ...) -> None: ...

class Congested(_message.Message):
    region_id: int
    def __init__(self, region_id: _Optional[int] = ...) -> None: ...

class Error(_message.Message):
    not_leader: _errorpb_pb2.NotLeader
    region_not_found: _errorpb_pb2.RegionNotFound
    epoch_not_match: _errorpb_pb2.EpochNotMatch
    duplicate_request: DuplicateRequest
    compatibility: Compatibility
    cluster_id_mismatch: ClusterIDMismatch
    server_is_busy: _errorpb_pb2.ServerIsBusy
    congested: Congested
    def __init__(self, not_leader: _Optional[_Union[_errorpb_pb2.NotLeader, _Mapping[str, object]]] = ..., region_not_found: _Optional[_Union[_errorpb_pb2.RegionNotFound, _Mapping[str, object]]] = ..., epoch_not_match: _Optional[_Union[_errorpb_pb2.EpochNotMatch, _Mapping[str, object]]] = ..., duplicate_request: _Optional[_Union[DuplicateRequest, _Mapping[str, object]]] = ..., compatibility: _Optional[_Union[Compatibility, _Mapping[str, object]]] = ..., cluster_id_mismatch: _Optional[_Union[ClusterIDMismatch, _Mapping[str, object]]] = ..., server_is_busy: _Optional[_Union[_errorpb_pb2.ServerIsBusy, _Mapping[str, object]]] = ..., congested: _Optional[_Union[Congested, _Mapping[str, object]]] = ...) -> None: ...

class TxnInfo(_message.Message):
    start_ts: int
    primary: bytes
    def __init__(self, start_ts: _Optional[int] = ..., primary: _Optional[bytes] = ...) -> None: ...

class TxnStatus(_message.Message):
    start_ts: int
    min_commit_ts: int
    commit_ts: int
    is_rolled_back: bool
    def __init__(self, start_ts: _Optional[int] = ..., min_commit_ts: _Optional[int] = ..., commit_ts: _Optional[int] = ..., is_rolled_back: _Optional[bool] = ...) -> None: ...

class Event(_message.Message):
    class LogType:
        UNKNOWN: _ClassVar[int]
        PREWRITE: _ClassVar[int]
        COMMIT: _ClassVar[int]
        ROLLBACK: _ClassVar[int]
        COMMITTED: _ClassVar[int]
        INITIALIZED: _ClassVar[int]
    UNKNOWN: int
    PREWRITE: int
    COMMIT: int
    ROLLBACK: int
    COMMITTED: int
    INITIALIZED: int
    class Row(_message.Message):
        class OpType:
            UNKNOWN: _ClassVar[int]
            PUT: _ClassVar[int]
            DELETE: _ClassVar[int]
        UNKNOWN: int
        PUT: int
        DELETE: int
        start_ts: int
        commit_ts: int
        type: int
        generation: int
        op_type: int
        key: bytes
        value: bytes
        old_value: bytes
        expire_ts_unix_secs: int
        txn_source: int
        def __init__(self, start_ts: _Optional[int] = ..., commit_ts: _Optional[int] = ..., type: _Optional[_Union[int, str]] = ..., generation: _Optional[int] = ..., op_type: _Optional[_Union[int, str]] = ..., key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., old_value: _Optional[bytes] = ..., expire_ts_unix_secs: _Optional[int] = ..., txn_source: _Optional[int] = ...) -> None: ...
    class Entries(_message.Message):
        entries: _containers.RepeatedCompositeFieldContainer[Event.Row]
        def __init__(self, entries: _Optional[_Iterable[_Union[Event.Row, _Mapping[str, object]]]] = ...) -> None: ...
    class Admin(_message.Message):
        def __init__(self) -> None: ...
    class LongTxn(_message.Message):
        txn_info: _containers.RepeatedCompositeFieldContainer[TxnInfo]
        def __init__(self, txn_info: _Optional[_Iterable[_Union[TxnInfo, _Mapping[str, object]]]] = ...) -> None: ...
    region_id: int
    index: int
    request_id: int
    entries: Event.Entries
    admin: Event.Admin
    error: Error
    resolved_ts: int
    long_txn: Event.LongTxn
    def __init__(self, region_id: _Optional[int] = ..., index: _Optional[int] = ..., request_id: _Optional[int] = ..., entries: _Optional[_Union[Event.Entries, _Mapping[str, object]]] = ..., admin: _Optional[_Union[Event.Admin, _Mapping[str, object]]] = ..., error: _Optional[_Union[Error, _Mapping[str, object]]] = ..., resolved_ts: _Optional[int] = ..., long_txn: _Optional[_Union[Event.LongTxn, _Mapping[str, object]]] = ...) -> None: ...

class ChangeDataEvent(_message.Message):
    events: _containers.RepeatedCompositeFieldContainer[Event]
    resolved_ts: ResolvedTs
    def __init__(self, events: _Optional[_Iterable[_Union[Event, _Mapping[str, object]]]] = ..., resolved_ts: _Optional[_Union[ResolvedTs, _Mapping[str, object]]] = ...) -> None: ...

class ResolvedTs(_message.Message):
    regions: _containers.RepeatedScalarFieldContainer[int]
    ts: int
    request_id: int
    def __init__(self, regions: _Optional[_Iterable[int]] = ..., ts: _Optional[int] = ..., request_id: _Optional[int] = ...) -> None: ...

class ChangeDataRequest(_message.Message):
    class KvAPI:
        TiDB: _ClassVar[int]
        RawKV: _ClassVar[int]
        TxnKV: _ClassVar[int]
    TiDB: int
    RawKV: int
    TxnKV: int
    class Register(_message.Message):
        def __init__(self) -> None: ...
    class Deregister(_message.Message):
        def __init__(self) -> None: ...
    class NotifyTxnStatus(_message.Message):
        txn_status: _containers.RepeatedCompositeFieldContainer[TxnStatus]
        def __init__(self, txn_status: _Optional[_Iterable[_Union[TxnStatus, _Mapping[str, object]]]] = ...) -> None: ...
    header: Header
    region_id: int
    region_epoch: _metapb_pb2.RegionEpoch
    checkpoint_ts: int
    start_key: bytes
    end_key: bytes
    request_id: int
    extra_op: int
    register: ChangeDataRequest.Register
    notify_txn_status: ChangeDataRequest.NotifyTxnStatus
    deregister: ChangeDataRequest.Deregister
    kv_api: int
    filter_loop: bool
    scan_priority: int
    def __init__(self, header: _Optional[_Union[Header, _Mapping[str, object]]] = ..., region_id: _Optional[int] = ..., region_epoch: _Optional[_Union[_metapb_pb2.RegionEpoch, _Mapping[str, object]]] = ..., checkpoint_ts: _Optional[int] = ..., start_key: _Optional[bytes] = ..., end_key: _Optional[bytes] = ..., request_id: _Optional[int] = ..., extra_op: _Optional[_Union[int, str]] = ..., register: _Optional[_Union[ChangeDataRequest.Register, _Mapping[str, object]]] = ..., notify_txn_status: _Optional[_Union[ChangeDataRequest.NotifyTxnStatus, _Mapping[str, object]]] = ..., deregister: _Optional[_Union[ChangeDataRequest.Deregister, _Mapping[str, object]]] = ..., kv_api: _Optional[_Union[int, str]] = ..., filter_loop: _Optional[bool] = ..., scan_priority: _Optional[_Union[int, str]] = ...) -> None: ...
