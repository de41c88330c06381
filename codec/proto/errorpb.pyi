from . import metapb as _metapb_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

class NotLeader(_message.Message):
    region_id: int
    leader: _metapb_pb2.Peer
    def __init__(self, region_id: _Optional[int] = ..., leader: _Optional[_Union[_metapb_pb2.Peer, _Mapping[str, object]]] = ...) -> None: ...

class BucketVersionNotMatch(_message.Message):
    version: int
    keys: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, version: _Optional[int] = ..., keys: _Optional[_Iterable[bytes]] = ...) -> None: ...

class DiskFull(_message.Message):
    store_id: _containers.RepeatedScalarFieldContainer[int]
    reason: str
    def __init__(self, store_id: _Optional[_Iterable[int]] = ..., reason: _Optional[str] = ...) -> None: ...

class StoreNotMatch(_message.Message):
    request_store_id: int
    actual_store_id: int
    def __init__(self, request_store_id: _Optional[int] = ..., actual_store_id: _Optional[int] = ...) -> None: ...

class RegionNotFound(_message.Message):
    region_id: int
    def __init__(self, region_id: _Optional[int] = ...) -> None: ...

class RegionNotInitialized(_message.Message):
    region_id: int
    def __init__(self, region_id: _Optional[int] = ...) -> None: ...

class KeyNotInRegion(_message.Message):
    key: bytes
    region_id: int
    start_key: bytes
    end_key: bytes
    def __init__(self, key: _Optional[bytes] = ..., region_id: _Optional[int] = ..., start_key: _Optional[bytes] = ..., end_key: _Optional[bytes] = ...) -> None: ...

class EpochNotMatch(_message.Message):
    current_regions: _containers.RepeatedCompositeFieldContainer[_metapb_pb2.Region]
    def __init__(self, current_regions: _Optional[_Iterable[_Union[_metapb_pb2.Region, _Mapping[str, object]]]] = ...) -> None: ...

class ServerIsBusy(_message.Message):
    reason: str
    backoff_ms: int
    estimated_wait_ms: int
    applied_index: int
    def __init__(self, reason: _Optional[str] = ..., backoff_ms: _Optional[int] = ..., estimated_wait_ms: _Optional[int] = ..., applied_index: _Optional[int] = ...) -> None: ...

class StaleCommand(_message.Message):
    def __init__(self) -> None: ...

class RaftEntryTooLarge(_message.Message):
    region_id: int
    entry_size: int
    def __init__(self, region_id: _Optional[int] = ..., entry_size: _Optional[int] = ...) -> None: ...

class MaxTimestampNotSynced(_message.Message):
    def __init__(self) -> None: ...

class ReadIndexNotReady(_message.Message):
    reason: str
    region_id: int
    def __init__(self, reason: _Optional[str] = ..., region_id: _Optional[int] = ...) -> None: ...

class ProposalInMergingMode(_message.Message):
    region_id: int
    def __init__(self, region_id: _Optional[int] = ...) -> None: ...

class DataIsNotReady(_message.Message):
    region_id: int
    peer_id: int
    safe_ts: int
    def __init__(self, region_id: _Optional[int] = ..., peer_id: _Optional[int] = ..., safe_ts: _Optional[int] = ...) -> None: ...

class MismatchPeerId(_message.Message):
    request_peer_id: int
    store_peer_id: int
    def __init__(self, request_peer_id: _Optional[int] = ..., store_peer_id: _Optional[int] = ...) -> None: ...

class Error(_message.Message):
    message: str
    not_leader: NotLeader
    region_not_found: RegionNotFound
    key_not_in_region: KeyNotInRegion
    epoch_not_match: EpochNotMatch
    server_is_busy: ServerIsBusy
    stale_command: StaleCommand
    store_not_match: StoreNotMatch
    raft_entry_too_large: RaftEntryTooLarge
    max_timestamp_not_synced: MaxTimestampNotSynced
    read_index_not_ready: ReadIndexNotReady
    proposal_in_merging_mode: ProposalInMergingMode
    data_is_not_ready: DataIsNotReady
    region_not_initialized: RegionNotInitialized
    disk_full: DiskFull
    mismatch_peer_id: MismatchPeerId
    bucket_version_not_match: BucketVersionNotMatch
    def __init__(self, message: _Optional[str] = ..., not_leader: _Optional[_Union[NotLeader, _Mapping[str, object]]] = ..., region_not_found: _Optional[_Union[RegionNotFound, _Mapping[str, object]]] = ..., key_not_in_region: _Optional[_Union[KeyNotInRegion, _Mapping[str, object]]] = ..., epoch_not_match: _Optional[_Union[EpochNotMatch, _Mapping[str, object]]] = ..., server_is_busy: _Optional[_Union[ServerIsBusy, _Mapping[str, object]]] = ..., stale_command: _Optional[_Union[StaleCommand, _Mapping[str, object]]] = ..., store_not_match: _Optional[_Union[StoreNotMatch, _Mapping[str, object]]] = ..., raft_entry_too_large: _Optional[_Union[RaftEntryTooLarge, _Mapping[str, object]]] = ..., max_timestamp_not_synced: _Optional[_Union[MaxTimestampNotSynced, _Mapping[str, object]]] = ..., read_index_not_ready: _Optional[_Union[ReadIndexNotReady, _Mapping[str, object]]] = ..., proposal_in_merging_mode: _Optional[_Union[ProposalInMergingMode, _Mapping[str, object]]] = ..., data_is_not_ready: _Optional[_Union[DataIsNotReady, _Mapping[str, object]]] = ..., region_not_initialized: _Optional[_Union[RegionNotInitialized, _Mapping[str, object]]] = ..., disk_full: _Optional[_Union[DiskFull, _Mapping[str, object]]] = ..., mismatch_peer_id: _Optional[_Union[MismatchPeerId, _Mapping[str, object]]] = ..., bucket_version_not_match: _Optional[_Union[BucketVersionNotMatch, _Mapping[str, object]]] = ...) -> None: ...
