from google.protobuf.internal import containers as _containers
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

class StoreState:
    Up: _ClassVar[int]
    Offline: _ClassVar[int]
    Tombstone: _ClassVar[int]

class NodeState:
    Preparing: _ClassVar[int]
    Serving: _ClassVar[int]
    Removing: _ClassVar[int]
    Removed: _ClassVar[int]

class PeerRole:
    Voter: _ClassVar[int]
    Learner: _ClassVar[int]
    IncomingVoter: _ClassVar[int]
    DemotingVoter: _ClassVar[int]

class Cluster(_message.Message):
    id: int
    max_peer_count: int
    def __init__(self, id: _Optional[int] = ..., max_peer_count: _Optional[int] = ...) -> None: ...

class StoreLabel(_message.Message):
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class Store(_message.Message):
    id: int
    address: str
    state: int
    labels: _containers.RepeatedCompositeFieldContainer[StoreLabel]
    version: str
    peer_address: str
    status_address: str
    git_hash: str
    start_timestamp: int
    deploy_path: str
    last_heartbeat: int
    physically_destroyed: bool
    node_state: int
    def __init__(self, id: _Optional[int] = ..., address: _Optional[str] = ..., state: _Optional[_Union[int, str]] = ..., labels: _Optional[_Iterable[_Union[StoreLabel, _Mapping[str, object]]]] = ..., version: _Optional[str] = ..., peer_address: _Optional[str] = ..., status_address: _Optional[str] = ..., git_hash: _Optional[str] = ..., start_timestamp: _Optional[int] = ..., deploy_path: _Optional[str] = ..., last_heartbeat: _Optional[int] = ..., physically_destroyed: _Optional[bool] = ..., node_state: _Optional[_Union[int, str]] = ...) -> None: ...

class RegionEpoch(_message.Message):
    conf_ver: int
    version: int
    def __init__(self, conf_ver: _Optional[int] = ..., version: _Optional[int] = ...) -> None: ...

class Region(_message.Message):
    id: int
    start_key: bytes
    end_key: bytes
    region_epoch: RegionEpoch
    peers: _containers.RepeatedCompositeFieldContainer[Peer]
    is_in_flashback: bool
    flashback_start_ts: int
    def __init__(self, id: _Optional[int] = ..., start_key: _Optional[bytes] = ..., end_key: _Optional[bytes] = ..., region_epoch: _Optional[_Union[RegionEpoch, _Mapping[str, object]]] = ..., peers: _Optional[_Iterable[_Union[Peer, _Mapping[str, object]]]] = ..., is_in_flashback: _Optional[bool] = ..., flashback_start_ts: _Optional[int] = ...) -> None: ...

class Peer(_message.Message):
    id: int
    store_id: int
    role: int
    is_witness: bool
    def __init__(self, id: _Optional[int] = ..., store_id: _Optional[int] = ..., role: _Optional[_Union[int, str]] = ..., is_witness: _Optional[bool] = ...) -> None: ...
