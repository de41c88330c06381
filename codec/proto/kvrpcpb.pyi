from . import errorpb as _errorpb_pb2
from . import metapb as _metapb_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

class APIVersion:
    V1: _ClassVar[int]
    V1TTL: _ClassVar[int]
    V2: _ClassVar[int]
    V3: _ClassVar[int]

class CommandPri:
    Normal: _ClassVar[int]
    Low: _ClassVar[int]
    High: _ClassVar[int]

class IsolationLevel:
    SI: _ClassVar[int]
    RC: _ClassVar[int]
    RCCheckTS: _ClassVar[int]

class RequestOrigin:
    RequestOriginUnknown: _ClassVar[int]
    RequestOriginTiDB: _ClassVar[int]

class Op:
    Put: _ClassVar[int]
    Del: _ClassVar[int]
    Lock: _ClassVar[int]
    Rollback: _ClassVar[int]
    Insert: _ClassVar[int]
    PessimisticLock: _ClassVar[int]
    CheckNotExists: _ClassVar[int]
    SharedLock: _ClassVar[int]
    SharedPessimisticLock: _ClassVar[int]

class Action:
    NoAction: _ClassVar[int]
    TTLExpireRollback: _ClassVar[int]
    LockNotExistRollback: _ClassVar[int]
    MinCommitTSPushed: _ClassVar[int]
    TTLExpirePessimisticRollback: _ClassVar[int]
    LockNotExistDoNothing: _ClassVar[int]

class ExtraOp:
    Noop: _ClassVar[int]
    ReadOldValue: _ClassVar[int]

class GetRequest(_message.Message):
    context: Context
    key: bytes
    version: int
    need_commit_ts: bool
    def __init__(self, context: _Optional[_Union[Context, _Mapping[str, object]]] = ..., key: _Optional[bytes] = ..., version: _Optional[int] = ..., need_commit_ts: _Optional[bool] = ...) -> None: ...

class KeyError(_message.Message):
    locked: LockInfo
    retryable: str
    abort: str
    conflict: WriteConflict
    already_exist: AlreadyExist
    deadlock: Deadlock
    commit_ts_expired: CommitTsExpired
    txn_not_found: TxnNotFound
    commit_ts_too_large: CommitTsTooLarge
    assertion_failed: AssertionFailed
    primary_mismatch: PrimaryMismatch
    txn_lock_not_found: TxnLockNotFound
    lock_upgrade_conflict: LockUpgradeConflict
    shared_lock_lost: SharedLockLost
    def __init__(self, locked: _Optional[_Union[LockInfo, _Mapping[str, object]]] = ..., retryable: _Optional[str] = ..., abort: _Optional[str] = ..., conflict: _Optional[_Union[WriteConflict, _Mapping[str, object]]] = ..., already_exist: _Optional[_Union[AlreadyExist, _Mapping[str, object]]] = ..., deadlock: _Optional[_Union[Deadlock, _Mapping[str, object]]] = ..., commit_ts_expired: _Optional[_Union[CommitTsExpired, _Mapping[str, object]]] = ..., txn_not_found: _Optional[_Union[TxnNotFound, _Mapping[str, object]]] = ..., commit_ts_too_large: _Optional[_Union[CommitTsTooLarge, _Mapping[str, object]]] = ..., assertion_failed: _Optional[_Union[AssertionFailed, _Mapping[str, object]]] = ..., primary_mismatch: _Optional[_Union[PrimaryMismatch, _Mapping[str, object]]] = ..., txn_lock_not_found: _Optional[_Union[TxnLockNotFound, _Mapping[str, object]]] = ..., lock_upgrade_conflict: _Optional[_Union[LockUpgradeConflict, _Mapping[str, object]]] = ..., shared_lock_lost: _Optional[_Union[SharedLockLost, _Mapping[str, object]]] = ...) -> None: ...

class GetResponse(_message.Message):
    region_error: _errorpb_pb2.Error
    error: KeyError
    value: bytes
    not_found: bool
    commit_ts: int
    def __init__(self, region_error: _Optional[_Union[_errorpb_pb2.Error, _Mapping[str, object]]] = ..., error: _Optional[_Union[KeyError, _Mapping[str, object]]] = ..., value: _Optional[bytes] = ..., not_found: _Optional[bool] = ..., commit_ts: _Optional[int] = ...) -> None: ...

class ScanRequest(_message.Message):
    context: Context
    start_key: bytes
    limit: int
    version: int
    key_only: bool
    reverse: bool
    end_key: bytes
    sample_step: int
    def __init__(self, context: _Optional[_Union[Context, _Mapping[str, object]]] = ..., start_key: _Optional[bytes] = ..., limit: _Optional[int] = ..., version: _Optional[int] = ..., key_only: _Optional[bool] = ..., reverse: _Optional[bool] = ..., end_key: _Optional[bytes] = ..., sample_step: _Optional[int] = ...) -> None: ...

class ScanResponse(_message.Message):
    region_error: _errorpb_pb2.Error
    pairs: _containers.RepeatedCompositeFieldContainer[KvPair]
    error: KeyError
    def __init__(self, region_error: _Optional[_Union[_errorpb_pb2.Error, _Mapping[str, object]]] = ..., pairs: _Optional[_Iterable[_Union[KvPair, _Mapping[str, object]]]] = ..., error: _Optional[_Union[KeyError, _Mapping[str, object]]] = ...) -> None: ...

class PrewriteRequest(_message.Message):
    class PessimisticAction:
        SKIP_PESSIMISTIC_CHECK: _ClassVar[int]
        DO_PESSIMISTIC_CHECK: _ClassVar[int]
        DO_CONSTRAINT_CHECK: _ClassVar[int]
    SKIP_PESSIMISTIC_CHECK: int
    DO_PESSIMISTIC_CHECK: int
    DO_CONSTRAINT_CHECK: int
    class ForUpdateTSConstraint(_message.Message):
        index: int
        expected_for_update_ts: int
        def __init__(self, index: _Optional[int] = ..., expected_for_update_ts: _Optional[int] = ...) -> None: ...
    context: Context
    mutations: _containers.RepeatedCompositeFieldContainer[Mutation]
    primary_lock: bytes
    start_version: int
    lock_ttl: int
    skip_constraint_check: bool
    pessimistic_actions: _containers.RepeatedScalarFieldContainer[int]
    txn_size: int
    for_update_ts: int
    min_commit_ts: int
    use_async_commit: bool
    secondaries: _containers.RepeatedScalarFieldContainer[bytes]
    try_one_pc: bool
    max_commit_ts: int
    for_update_ts_constraints: _containers.RepeatedCompositeFieldContainer[PrewriteRequest.ForUpdateTSConstraint]
    txn_file_chunks: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, context: _Optional[_Union[Context, _Mapping[str, object]]] = ..., mutations: _Optional[_Iterable[_Union[Mutation, _Mapping[str, object]]]] = ..., primary_lock: _Optional[bytes] = ..., start_version: _Optional[int] = ..., lock_ttl: _Optional[int] = ..., skip_constraint_check: _Optional[bool] = ..., pessimistic_actions: _Optional[_Iterable[_Union[int, str]]] = ..., txn_size: _Optional[int] = ..., for_update_ts: _Optional[int] = ..., min_commit_ts: _Optional[int] = ..., use_async_commit: _Optional[bool] = ..., secondaries: _Optional[_Iterable[bytes]] = ..., try_one_pc: _Optional[bool] = ..., max_commit_ts: _Optional[int] = ..., for_update_ts_constraints: _Optional[_Iterable[_Union[PrewriteRequest.ForUpdateTSConstraint, _Mapping[str, object]]]] = ..., txn_file_chunks: _Optional[_Iterable[int]] = ...) -> None: ...

class PrewriteResponse(_message.Message):
    region_error: _errorpb_pb2.Error
    errors: _containers.RepeatedCompositeFieldContainer[KeyError]
    min_commit_ts: int
    one_pc_commit_ts: int
    def __init__(self, region_error: _Optional[_Union[_errorpb_pb2.Error, _Mapping[str, object]]] = ..., errors: _Optional[_Iterable[_Union[KeyError, _Mapping[str, object]]]] = ..., min_commit_ts: _Optional[int] = ..., one_pc_commit_ts: _Optional[int] = ...) -> None: ...

class CheckTxnStatusRequest(_message.Message):
    context: Context
    primary_key: bytes
    lock_ts: int
    caller_start_ts: int
    current_ts: int
    rollback_if_not_exist: bool
    force_sync_commit: bool
    resolving_pessimistic_lock: bool
    verify_is_primary: bool
    is_txn_file: bool
    def __init__(self, context: _Optional[_Union[Context, _Mapping[str, object]]] = ..., primary_key: _Optional[bytes] = ..., lock_ts: _Optional[int] = ..., caller_start_ts: _Optional[int] = ..., current_ts: _Optional[int] = ..., rollback_if_not_exist: _Optional[bool] = ..., force_sync_commit: _Optional[bool] = ..., resolving_pessimistic_lock: _Optional[bool] = ..., verify_is_primary: _Optional[bool] = ..., is_txn_file: _Optional[bool] = ...) -> None: ...

class CheckTxnStatusResponse(_message.Message):
    region_error: _errorpb_pb2.Error
    error: KeyError
    lock_ttl: int
    commit_version: int
    action: int
    lock_info: LockInfo
    def __init__(self, region_error: _Optional[_Union[_errorpb_pb2.Error, _Mapping[str, object]]] = ..., error: _Optional[_Union[KeyError, _Mapping[str, object]]] = ..., lock_ttl: _Optional[int] = ..., commit_version: _Optional[int] = ..., action: _Optional[_Union[int, str]] = ..., lock_info: _Optional[_Union[LockInfo, _Mapping[str, object]]] = ...) -> None: ...

class CommitRequest(_message.Message):
    context: Context
    start_version: int
    keys: _containers.RepeatedScalarFieldContainer[bytes]
    commit_version: int
    primary_key: bytes
    use_async_commit: bool
    is_txn_file: bool
    def __init__(self, context: _Optional[_Union[Context, _Mapping[str, object]]] = ..., start_version: _Optional[int] = ..., keys: _Optional[_Iterable[bytes]] = ..., commit_version: _Optional[int] = ..., primary_key: _Optional[bytes] = ..., use_async_commit: _Optional[bool] = ..., is_txn_file: _Optional[bool] = ...) -> None: ...

class CommitResponse(_message.Message):
    region_error: _errorpb_pb2.Error
    error: KeyError
    commit_version: int
    def __init__(self, region_error: _Optional[_Union[_errorpb_pb2.Error, _Mapping[str, object]]] = ..., error: _Optional[_Union[KeyError, _Mapping[str, object]]] = ..., commit_version: _Optional[int] = ...) -> None: ...

class BatchRollbackRequest(_message.Message):
    context: Context
    start_version: int
    keys: _containers.RepeatedScalarFieldContainer[bytes]
    is_txn_file: bool
    def __init__(self, context: _Optional[_Union[Context, _Mapping[str, object]]] = ..., start_version: _Optional[int] = ..., keys: _Optional[_Iterable[bytes]] = ..., is_txn_file: _Optional[bool] = ...) -> None: ...

class BatchRollbackResponse(_message.Message):
    region_error: _errorpb_pb2.Error
    error: KeyError
    def __init__(self, region_error: _Optional[_Union[_errorpb_pb2.Error, _Mapping[str, object]]] = ..., error: _Optional[_Union[KeyError, _Mapping[str, object]]] = ...) -> None: ...

class CheckSecondaryLocksRequest(_message.Message):
    context: Context
    keys: _containers.RepeatedScalarFieldContainer[bytes]
    start_version: int
    def __init__(self, context: _Optional[_Union[Context, _Mapping[str, object]]] = ..., keys: _Optional[_Iterable[bytes]] = ..., start_version: _Optional[int] = ...) -> None: ...

class CheckSecondaryLocksResponse(_message.Message):
    region_error: _errorpb_pb2.Error
    error: KeyError
    locks: _containers.RepeatedCompositeFieldContainer[LockInfo]
    commit_ts: int
    def __init__(self, region_error: _Optional[_Union[_errorpb_pb2.Error, _Mapping[str, object]]] = ..., error: _Optional[_Union[KeyError, _Mapping[str, object]]] = ..., locks: _Optional[_Iterable[_Union[LockInfo, _Mapping[str, object]]]] = ..., commit_ts: _Optional[int] = ...) -> None: ...

class ScanLockRequest(_message.Message):
    context: Context
    max_version: int
    start_key: bytes
    limit: int
    end_key: bytes
    def __init__(self, context: _Optional[_Union[Context, _Mapping[str, object]]] = ..., max_version: _Optional[int] = ..., start_key: _Optional[bytes] = ..., limit: _Optional[int] = ..., end_key: _Optional[bytes] = ...) -> None: ...

class ScanLockResponse(_message.Message):
    region_error: _errorpb_pb2.Error
    error: KeyError
    locks: _containers.RepeatedCompositeFieldContainer[LockInfo]
    def __init__(self, region_error: _Optional[_Union[_errorpb_pb2.Error, _Mapping[str, object]]] = ..., error: _Optional[_Union[KeyError, _Mapping[str, object]]] = ..., locks: _Optional[_Iterable[_Union[LockInfo, _Mapping[str, object]]]] = ...) -> None: ...

class ResolveLockRequest(_message.Message):
    context: Context
    start_version: int
    commit_version: int
    txn_infos: _containers.RepeatedCompositeFieldContainer[TxnInfo]
    keys: _containers.RepeatedScalarFieldContainer[bytes]
    is_async: bool
    is_txn_file: bool
    def __init__(self, context: _Optional[_Union[Context, _Mapping[str, object]]] = ..., start_version: _Optional[int] = ..., commit_version: _Optional[int] = ..., txn_infos: _Optional[_Iterable[_Union[TxnInfo, _Mapping[str, object]]]] = ..., keys: _Optional[_Iterable[bytes]] = ..., is_async: _Optional[bool] = ..., is_txn_file: _Optional[bool] = ...) -> None: ...

class ResolveLockResponse(_message.Message):
    region_error: _errorpb_pb2.Error
    error: KeyError
    def __init__(self, region_error: _Optional[_Union[_errorpb_pb2.Error, _Mapping[str, object]]] = ..., error: _Optional[_Union[KeyError, _Mapping[str, object]]] = ...) -> None: ...

class Context(_message.Message):
    region_id: int
    region_epoch: _metapb_pb2.RegionEpoch
    peer: _metapb_pb2.Peer
    term: int
    priority: int
    isolation_level: int
    not_fill_cache: bool
    sync_log: bool
    record_time_stat: bool
    record_scan_stat: bool
    replica_read: bool
    resolved_locks: _containers.RepeatedScalarFieldContainer[int]
    max_execution_duration_ms: int
    applied_index: int
    task_id: int
    stale_read: bool
    resource_group_tag: bytes
    is_retry_request: bool
    api_version: int
    committed_locks: _containers.RepeatedScalarFieldContainer[int]
    request_source: str
    txn_source: int
    busy_threshold_ms: int
    request_origin: int
    keyspace_name: str
    keyspace_id: int
    buckets_version: int
    cluster_id: int
    trace_id: bytes
    trace_control_flags: int
    def __init__(self, region_id: _Optional[int] = ..., region_epoch: _Optional[_Union[_metapb_pb2.RegionEpoch, _Mapping[str, object]]] = ..., peer: _Optional[_Union[_metapb_pb2.Peer, _Mapping[str, object]]] = ..., term: _Optional[int] = ..., priority: _Optional[_Union[int, str]] = ..., isolation_level: _Optional[_Union[int, str]] = ..., not_fill_cache: _Optional[bool] = ..., sync_log: _Optional[bool] = ..., record_time_stat: _Optional[bool] = ..., record_scan_stat: _Optional[bool] = ..., replica_read: _Optional[bool] = ..., resolved_locks: _Optional[_Iterable[int]] = ..., max_execution_duration_ms: _Optional[int] = ..., applied_index: _Optional[int] = ..., task_id: _Optional[int] = ..., stale_read: _Optional[bool] = ..., resource_group_tag: _Optional[bytes] = ..., is_retry_request: _Optional[bool] = ..., api_version: _Optional[_Union[int, str]] = ..., committed_locks: _Optional[_Iterable[int]] = ..., request_source: _Optional[str] = ..., txn_source: _Optional[int] = ..., busy_threshold_ms: _Optional[int] = ..., request_origin: _Optional[_Union[int, str]] = ..., keyspace_name: _Optional[str] = ..., keyspace_id: _Optional[int] = ..., buckets_version: _Optional[int] = ..., cluster_id: _Optional[int] = ..., trace_id: _Optional[bytes] = ..., trace_control_flags: _Optional[int] = ...) -> None: ...

class LockInfo(_message.Message):
    primary_lock: bytes
    lock_version: int
    key: bytes
    lock_ttl: int
    txn_size: int
    lock_type: int
    lock_for_update_ts: int
    use_async_commit: bool
    min_commit_ts: int
    secondaries: _containers.RepeatedScalarFieldContainer[bytes]
    duration_to_last_update_ms: int
    shared_lock_infos: _containers.RepeatedCompositeFieldContainer[LockInfo]
    is_txn_file: bool
    def __init__(self, primary_lock: _Optional[bytes] = ..., lock_version: _Optional[int] = ..., key: _Optional[bytes] = ..., lock_ttl: _Optional[int] = ..., txn_size: _Optional[int] = ..., lock_type: _Optional[_Union[int, str]] = ..., lock_for_update_ts: _Optional[int] = ..., use_async_commit: _Optional[bool] = ..., min_commit_ts: _Optional[int] = ..., secondaries: _Optional[_Iterable[bytes]] = ..., duration_to_last_update_ms: _Optional[int] = ..., shared_lock_infos: _Optional[_Iterable[_Union[LockInfo, _Mapping[str, object]]]] = ..., is_txn_file: _Optional[bool] = ...) -> None: ...

class CommitTsExpired(_message.Message):
    start_ts: int
    attempted_commit_ts: int
    key: bytes
    min_commit_ts: int
    def __init__(self, start_ts: _Optional[int] = ..., attempted_commit_ts: _Optional[int] = ..., key: _Optional[bytes] = ..., min_commit_ts: _Optional[int] = ...) -> None: ...

class CommitTsTooLarge(_message.Message):
    commit_ts: int
    def __init__(self, commit_ts: _Optional[int] = ...) -> None: ...

class AssertionFailed(_message.Message):
    start_ts: int
    key: bytes
    existing_start_ts: int
    existing_commit_ts: int
    def __init__(self, start_ts: _Optional[int] = ..., key: _Optional[bytes] = ..., existing_start_ts: _Optional[int] = ..., existing_commit_ts: _Optional[int] = ...) -> None: ...

class PrimaryMismatch(_message.Message):
    lock_info: LockInfo
    def __init__(self, lock_info: _Optional[_Union[LockInfo, _Mapping[str, object]]] = ...) -> None: ...

class TxnLockNotFound(_message.Message):
    key: bytes
    def __init__(self, key: _Optional[bytes] = ...) -> None: ...

class LockUpgradeConflict(_message.Message):
    def __init__(self) -> None: ...

class SharedLockLost(_message.Message):
    def __init__(self) -> None: ...

class TxnNotFound(_message.Message):
    start_ts: int
    primary_key: bytes
    def __init__(self, start_ts: _Optional[int] = ..., primary_key: _Optional[bytes] = ...) -> None: ...

class WriteConflict(_message.Message):
    class Reason:
        Unknown: _ClassVar[int]
        Optimistic: _ClassVar[int]
        PessimisticRetry: _ClassVar[int]
        SelfRolledBack: _ClassVar[int]
        RcCheckTs: _ClassVar[int]
        LazyUniquenessCheck: _ClassVar[int]
        NotLockedKeyConflict: _ClassVar[int]
    Unknown: int
    Optimistic: int
    PessimisticRetry: int
    SelfRolledBack: int
    RcCheckTs: int
    LazyUniquenessCheck: int
    NotLockedKeyConflict: int
    start_ts: int
    conflict_ts: int
    key: bytes
    primary: bytes
    conflict_commit_ts: int
    reason: int
    def __init__(self, start_ts: _Optional[int] = ..., conflict_ts: _Optional[int] = ..., key: _Optional[bytes] = ..., primary: _Optional[bytes] = ..., conflict_commit_ts: _Optional[int] = ..., reason: _Optional[_Union[int, str]] = ...) -> None: ...

class AlreadyExist(_message.Message):
    key: bytes
    def __init__(self, key: _Optional[bytes] = ...) -> None: ...

class Deadlock(_message.Message):
    lock_ts: int
    lock_key: bytes
    deadlock_key_hash: int
    deadlock_key: bytes
    def __init__(self, lock_ts: _Optional[int] = ..., lock_key: _Optional[bytes] = ..., deadlock_key_hash: _Optional[int] = ..., deadlock_key: _Optional[bytes] = ...) -> None: ...

class KvPair(_message.Message):
    error: KeyError
    key: bytes
    value: bytes
    commit_ts: int
    def __init__(self, error: _Optional[_Union[KeyError, _Mapping[str, object]]] = ..., key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., commit_ts: _Optional[int] = ...) -> None: ...

class Mutation(_message.Message):
    op: int
    key: bytes
    value: bytes
    def __init__(self, op: _Optional[_Union[int, str]] = ..., key: _Optional[bytes] = ..., value: _Optional[bytes] = ...) -> None: ...

class TxnInfo(_message.Message):
    txn: int
    status: int
    is_txn_file: bool
    def __init__(self, txn: _Optional[int] = ..., status: _Optional[int] = ..., is_txn_file: _Optional[bool] = ...) -> None: ...
