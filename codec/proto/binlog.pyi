from google.protobuf.internal import containers as _containers
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

class MutationType:
    Insert: _ClassVar[int]
    Update: _ClassVar[int]
    DeleteID: _ClassVar[int]
    DeletePK: _ClassVar[int]
    DeleteRow: _ClassVar[int]

class BinlogType:
    Prewrite: _ClassVar[int]
    Commit: _ClassVar[int]
    Rollback: _ClassVar[int]
    PreDDL: _ClassVar[int]
    PostDDL: _ClassVar[int]

class TableMutation(_message.Message):
    table_id: int
    inserted_rows: _containers.RepeatedScalarFieldContainer[bytes]
    updated_rows: _containers.RepeatedScalarFieldContainer[bytes]
    deleted_ids: _containers.RepeatedScalarFieldContainer[int]
    deleted_pks: _containers.RepeatedScalarFieldContainer[bytes]
    deleted_rows: _containers.RepeatedScalarFieldContainer[bytes]
    sequence: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, table_id: _Optional[int] = ..., inserted_rows: _Optional[_Iterable[bytes]] = ..., updated_rows: _Optional[_Iterable[bytes]] = ..., deleted_ids: _Optional[_Iterable[int]] = ..., deleted_pks: _Optional[_Iterable[bytes]] = ..., deleted_rows: _Optional[_Iterable[bytes]] = ..., sequence: _Optional[_Iterable[_Union[int, str]]] = ...) -> None: ...

class PrewriteValue(_message.Message):
    schema_version: int
    mutations: _containers.RepeatedCompositeFieldContainer[TableMutation]
    def __init__(self, schema_version: _Optional[int] = ..., mutations: _Optional[_Iterable[_Union[TableMutation, _Mapping[str, object]]]] = ...) -> None: ...

class Binlog(_message.Message):
    tp: int
    start_ts: int
    commit_ts: int
    prewrite_key: bytes
    prewrite_value: bytes
    ddl_query: bytes
    ddl_job_id: int
    ddl_schema_state: int
    def __init__(self, tp: _Optional[_Union[int, str]] = ..., start_ts: _Optional[int] = ..., commit_ts: _Optional[int] = ..., prewrite_key: _Optional[bytes] = ..., prewrite_value: _Optional[bytes] = ..., ddl_query: _Optional[bytes] = ..., ddl_job_id: _Optional[int] = ..., ddl_schema_state: _Optional[int] = ...) -> None: ...
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

class WriteBinlogReq(_message.Message):
    clusterID: int
    payload: bytes
    def __init__(self, clusterID: _Optional[int] = ..., payload: _Optional[bytes] = ...) -> None: ...

class WriteBinlogResp(_message.Message):
    errmsg: str
    def __init__(self, errmsg: _Optional[str] = ...) -> None: ...

class PullBinlogReq(_message.Message):
    clusterID: int
    startFrom: Pos
    def __init__(self, clusterID: _Optional[int] = ..., startFrom: _Optional[_Union[Pos, _Mapping[str, object]]] = ...) -> None: ...

class PullBinlogResp(_message.Message):
    entity: Entity
    def __init__(self, entity: _Optional[_Union[Entity, _Mapping[str, object]]] = ...) -> None: ...

class Pos(_message.Message):
    suffix: int
    offset: int
    def __init__(self, suffix: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...

class Meta(_message.Message):
    startTs: int
    commitTs: int
    def __init__(self, startTs: _Optional[int] = ..., commitTs: _Optional[int] = ...) -> None: ...

class Entity(_message.Message):
    pos: Pos
    payload: bytes
    checksum: bytes
    meta: Meta
    def __init__(self, pos: _Optional[_Union[Pos, _Mapping[str, object]]] = ..., payload: _Optional[bytes] = ..., checksum: _Optional[bytes] = ..., meta: _Optional[_Union[Meta, _Mapping[str, object]]] = ...) -> None: ...

class NotifyReq(_message.Message):
    def __init__(self) -> None: ...

class NotifyResp(_message.Message):
    def __init__(self) -> None: ...
