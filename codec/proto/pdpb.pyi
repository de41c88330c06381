from . import metapb as _metapb_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

class ErrorType:
    OK: _ClassVar[int]
    UNKNOWN: _ClassVar[int]
    NOT_BOOTSTRAPPED: _ClassVar[int]
    STORE_TOMBSTONE: _ClassVar[int]
    ALREADY_BOOTSTRAPPED: _ClassVar[int]
    INCOMPATIBLE_VERSION: _ClassVar[int]
    REGION_NOT_FOUND: _ClassVar[int]
    GLOBAL_CONFIG_NOT_FOUND: _ClassVar[int]
    DUPLICATED_ENTRY: _ClassVar[int]
    ENTRY_NOT_FOUND: _ClassVar[int]
    INVALID_VALUE: _ClassVar[int]
    DATA_COMPACTED: _ClassVar[int]
    REGIONS_NOT_CONTAIN_ALL_KEY_RANGE: _ClassVar[int]

class RequestHeader(_message.Message):
    cluster_id: int
    sender_id: int
    caller_id: str
    caller_component: str
    def __init__(self, cluster_id: _Optional[int] = ..., sender_id: _Optional[int] = ..., caller_id: _Optional[str] = ..., caller_component: _Optional[str] = ...) -> None: ...

class ResponseHeader(_message.Message):
    cluster_id: int
    error: Error
    def __init__(self, cluster_id: _Optional[int] = ..., error: _Optional[_Union[Error, _Mapping[str, object]]] = ...) -> None: ...

class Error(_message.Message):
    type: int
    message: str
    def __init__(self, type: _Optional[_Union[int, str]] = ..., message: _Optional[str] = ...) -> None: ...

class TsoRequest(_message.Message):
    header: RequestHeader
    count: int
    dc_location: str
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping[str, object]]] = ..., count: _Optional[int] = ..., dc_location: _Optional[str] = ...) -> None: ...

class Timestamp(_message.Message):
    physical: int
    logical: int
    suffix_bits: int
    def __init__(self, physical: _Optional[int] = ..., logical: _Optional[int] = ..., suffix_bits: _Optional[int] = ...) -> None: ...

class TsoResponse(_message.Message):
    header: ResponseHeader
    count: int
    timestamp: Timestamp
    def __init__(self, header: _Optional[_Union[ResponseHeader, _Mapping[str, object]]] = ..., count: _Optional[int] = ..., timestamp: _Optional[_Union[Timestamp, _Mapping[str, object]]] = ...) -> None: ...

class BootstrapRequest(_message.Message):
    header: RequestHeader
    store: _metapb_pb2.Store
    region: _metapb_pb2.Region
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping[str, object]]] = ..., store: _Optional[_Union[_metapb_pb2.Store, _Mapping[str, object]]] = ..., region: _Optional[_Union[_metapb_pb2.Region, _Mapping[str, object]]] = ...) -> None: ...

class BootstrapResponse(_message.Message):
    header: ResponseHeader
    def __init__(self, header: _Optional[_Union[ResponseHeader, _Mapping[str, object]]] = ...) -> None: ...

class IsBootstrappedRequest(_message.Message):
    header: RequestHeader
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping[str, object]]] = ...) -> None: ...

class IsBootstrappedResponse(_message.Message):
    header: ResponseHeader
    bootstrapped: bool
    def __init__(self, header: _Optional[_Union[ResponseHeader, _Mapping[str, object]]] = ..., bootstrapped: _Optional[bool] = ...) -> None: ...

class AllocIDRequest(_message.Message):
    header: RequestHeader
    count: int
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping[str, object]]] = ..., count: _Optional[int] = ...) -> None: ...

class AllocIDResponse(_message.Message):
    header: ResponseHeader
    id: int
    count: int
    def __init__(self, header: _Optional[_Union[ResponseHeader, _Mapping[str, object]]] = ..., id: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class GetStoreRequest(_message.Message):
    header: RequestHeader
    store_id: int
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping[str, object]]] = ..., store_id: _Optional[int] = ...) -> None: ...

class GetStoreResponse(_message.Message):
    header: ResponseHeader
    store: _metapb_pb2.Store
    def __init__(self, header: _Optional[_Union[ResponseHeader, _Mapping[str, object]]] = ..., store: _Optional[_Union[_metapb_pb2.Store, _Mapping[str, object]]] = ...) -> None: ...

class GetAllStoresRequest(_message.Message):
    header: RequestHeader
    exclude_tombstone_stores: bool
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping[str, object]]] = ..., exclude_tombstone_stores: _Optional[bool] = ...) -> None: ...

class GetAllStoresResponse(_message.Message):
    header: ResponseHeader
    stores: _containers.RepeatedCompositeFieldContainer[_metapb_pb2.Store]
    def __init__(self, header: _Optional[_Union[ResponseHeader, _Mapping[str, object]]] = ..., stores: _Optional[_Iterable[_Union[_metapb_pb2.Store, _Mapping[str, object]]]] = ...) -> None: ...

class GetRegionRequest(_message.Message):
    header: RequestHeader
    region_key: bytes
    need_buckets: bool
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping[str, object]]] = ..., region_key: _Optional[bytes] = ..., need_buckets: _Optional[bool] = ...) -> None: ...

class GetRegionResponse(_message.Message):
    header: ResponseHeader
    region: _metapb_pb2.Region
    leader: _metapb_pb2.Peer
    down_peers: _containers.RepeatedCompositeFieldContainer[PeerStats]
    pending_peers: _containers.RepeatedCompositeFieldContainer[_metapb_pb2.Peer]
    def __init__(self, header: _Optional[_Union[ResponseHeader, _Mapping[str, object]]] = ..., region: _Optional[_Union[_metapb_pb2.Region, _Mapping[str, object]]] = ..., leader: _Optional[_Union[_metapb_pb2.Peer, _Mapping[str, object]]] = ..., down_peers: _Optional[_Iterable[_Union[PeerStats, _Mapping[str, object]]]] = ..., pending_peers: _Optional[_Iterable[_Union[_metapb_pb2.Peer, _Mapping[str, object]]]] = ...) -> None: ...

class GetRegionByIDRequest(_message.Message):
    header: RequestHeader
    region_id: int
    need_buckets: bool
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping[str, object]]] = ..., region_id: _Optional[int] = ..., need_buckets: _Optional[bool] = ...) -> None: ...

class ScanRegionsRequest(_message.Message):
    header: RequestHeader
    start_key: bytes
    limit: int
    end_key: bytes
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping[str, object]]] = ..., start_key: _Optional[bytes] = ..., limit: _Optional[int] = ..., end_key: _Optional[bytes] = ...) -> None: ...

class Region(_message.Message):
    region: _metapb_pb2.Region
    leader: _metapb_pb2.Peer
    down_peers: _containers.RepeatedCompositeFieldContainer[PeerStats]
    pending_peers: _containers.RepeatedCompositeFieldContainer[_metapb_pb2.Peer]
    def __init__(self, region: _Optional[_Union[_metapb_pb2.Region, _Mapping[str, object]]] = ..., leader: _Optional[_Union[_metapb_pb2.Peer, _Mapping[str, object]]] = ..., down_peers: _Optional[_Iterable[_Union[PeerStats, _Mapping[str, object]]]] = ..., pending_peers: _Optional[_Iterable[_Union[_metapb_pb2.Peer, _Mapping[str, object]]]] = ...) -> None: ...

class ScanRegionsResponse(_message.Message):
    header: ResponseHeader
    region_metas: _containers.RepeatedCompositeFieldContainer[_metapb_pb2.Region]
    leaders: _containers.RepeatedCompositeFieldContainer[_metapb_pb2.Peer]
    regions: _containers.RepeatedCompositeFieldContainer[Region]
    def __init__(self, header: _Optional[_Union[ResponseHeader, _Mapping[str, object]]] = ..., region_metas: _Optional[_Iterable[_Union[_metapb_pb2.Region, _Mapping[str, object]]]] = ..., leaders: _Optional[_Iterable[_Union[_metapb_pb2.Peer, _Mapping[str, object]]]] = ..., regions: _Optional[_Iterable[_Union[Region, _Mapping[str, object]]]] = ...) -> None: ...

class KeyRange(_message.Message):
    start_key: bytes
    end_key: bytes
    def __init__(self, start_key: _Optional[bytes] = ..., end_key: _Optional[bytes] = ...) -> None: ...

class BatchScanRegionsRequest(_message.Message):
    header: RequestHeader
    need_buckets: bool
    ranges: _containers.RepeatedCompositeFieldContainer[KeyRange]
    limit: int
    contain_all_key_range: bool
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping[str, object]]] = ..., need_buckets: _Optional[bool] = ..., ranges: _Optional[_Iterable[_Union[KeyRange, _Mapping[str, object]]]] = ..., limit: _Optional[int] = ..., contain_all_key_range: _Optional[bool] = ...) -> None: ...

class BatchScanRegionsResponse(_message.Message):
    header: ResponseHeader
    regions: _containers.RepeatedCompositeFieldContainer[Region]
    def __init__(self, header: _Optional[_Union[ResponseHeader, _Mapping[str, object]]] = ..., regions: _Optional[_Iterable[_Union[Region, _Mapping[str, object]]]] = ...) -> None: ...

class GetClusterConfigRequest(_message.Message):
    header: RequestHeader
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping[str, object]]] = ...) -> None: ...

class GetClusterConfigResponse(_message.Message):
    header: ResponseHeader
    cluster: _metapb_pb2.Cluster
    def __init__(self, header: _Optional[_Union[ResponseHeader, _Mapping[str, object]]] = ..., cluster: _Optional[_Union[_metapb_pb2.Cluster, _Mapping[str, object]]] = ...) -> None: ...

class Member(_message.Message):
    name: str
    member_id: int
    peer_urls: _containers.RepeatedScalarFieldContainer[str]
    client_urls: _containers.RepeatedScalarFieldContainer[str]
    leader_priority: int
    deploy_path: str
    binary_version: str
    git_hash: str
    dc_location: str
    def __init__(self, name: _Optional[str] = ..., member_id: _Optional[int] = ..., peer_urls: _Optional[_Iterable[str]] = ..., client_urls: _Optional[_Iterable[str]] = ..., leader_priority: _Optional[int] = ..., deploy_path: _Optional[str] = ..., binary_version: _Optional[str] = ..., git_hash: _Optional[str] = ..., dc_location: _Optional[str] = ...) -> None: ...

class GetMembersRequest(_message.Message):
    header: RequestHeader
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping[str, object]]] = ...) -> None: ...

class GetMembersResponse(_message.Message):
    header: ResponseHeader
    members: _containers.RepeatedCompositeFieldContainer[Member]
    leader: Member
    etcd_leader: Member
    def __init__(self, header: _Optional[_Union[ResponseHeader, _Mapping[str, object]]] = ..., members: _Optional[_Iterable[_Union[Member, _Mapping[str, object]]]] = ..., leader: _Optional[_Union[Member, _Mapping[str, object]]] = ..., etcd_leader: _Optional[_Union[Member, _Mapping[str, object]]] = ...) -> None: ...

class PeerStats(_message.Message):
    peer: _metapb_pb2.Peer
    down_seconds: int
    def __init__(self, peer: _Optional[_Union[_metapb_pb2.Peer, _Mapping[str, object]]] = ..., down_seconds: _Optional[int] = ...) -> None: ...

class GetGCSafePointRequest(_message.Message):
    header: RequestHeader
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping[str, object]]] = ...) -> None: ...

class GetGCSafePointResponse(_message.Message):
    header: ResponseHeader
    safe_point: int
    def __init__(self, header: _Optional[_Union[ResponseHeader, _Mapping[str, object]]] = ..., safe_point: _Optional[int] = ...) -> None: ...

class UpdateServiceGCSafePointRequest(_message.Message):
    header: RequestHeader
    service_id: bytes
    TTL: int
    safe_point: int
    def __init__(self, header: _Optional[_Union[RequestHeader, _Mapping[str, object]]] = ..., service_id: _Optional[bytes] = ..., TTL: _Optional[int] = ..., safe_point: _Optional[int] = ...) -> None: ...

class UpdateServiceGCSafePointResponse(_message.Message):
    header: ResponseHeader
    service_id: bytes
    TTL: int
    min_safe_point: int
    def __init__(self, header: _Optional[_Union[ResponseHeader, _Mapping[str, object]]] = ..., service_id: _Optional[bytes] = ..., TTL: _Optional[int] = ..., min_safe_point: _Optional[int] = ...) -> None: ...
