from google.protobuf.internal import containers as _containers
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

class PacketType:
    PACKET_TYPE_UNKNOWN: _ClassVar[int]
    MESSAGES: _ClassVar[int]

class EntryType:
    ENTRY_TYPE_UNKNOWN: _ClassVar[int]
    TRANSACTIONBEGIN: _ClassVar[int]
    ROWDATA: _ClassVar[int]
    TRANSACTIONEND: _ClassVar[int]
    HEARTBEAT: _ClassVar[int]
    GTIDLOG: _ClassVar[int]

class Type:
    TYPE_UNKNOWN: _ClassVar[int]
    ORACLE: _ClassVar[int]
    MYSQL: _ClassVar[int]
    PGSQL: _ClassVar[int]

class EventType:
    EVENT_TYPE_UNKNOWN: _ClassVar[int]
    INSERT: _ClassVar[int]
    UPDATE: _ClassVar[int]
    DELETE: _ClassVar[int]
    CREATE: _ClassVar[int]
    ALTER: _ClassVar[int]
    ERASE: _ClassVar[int]
    QUERY: _ClassVar[int]
    TRUNCATE: _ClassVar[int]
    RENAME: _ClassVar[int]
    CINDEX: _ClassVar[int]
    DINDEX: _ClassVar[int]
    GTID: _ClassVar[int]
    XACOMMIT: _ClassVar[int]
    XAROLLBACK: _ClassVar[int]
    MHEARTBEAT: _ClassVar[int]

class Packet(_message.Message):
    type: int
    body: bytes
    def __init__(self, type: _Optional[_Union[int, str]] = ..., body: _Optional[bytes] = ...) -> None: ...

class Messages(_message.Message):
    batch_id: int
    messages: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, batch_id: _Optional[int] = ..., messages: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Entry(_message.Message):
    header: Header
    entryType: int
    storeValue: bytes
    def __init__(self, header: _Optional[_Union[Header, _Mapping[str, object]]] = ..., entryType: _Optional[_Union[int, str]] = ..., storeValue: _Optional[bytes] = ...) -> None: ...

class Header(_message.Message):
    version: int
    logfileName: str
    logfileOffset: int
    serverId: int
    serverenCode: str
    executeTime: int
    sourceType: int
    schemaName: str
    tableName: str
    eventLength: int
    eventType: int
    props: _containers.RepeatedCompositeFieldContainer[Pair]
    gtid: str
    def __init__(self, version: _Optional[int] = ..., logfileName: _Optional[str] = ..., logfileOffset: _Optional[int] = ..., serverId: _Optional[int] = ..., serverenCode: _Optional[str] = ..., executeTime: _Optional[int] = ..., sourceType: _Optional[_Union[int, str]] = ..., schemaName: _Optional[str] = ..., tableName: _Optional[str] = ..., eventLength: _Optional[int] = ..., eventType: _Optional[_Union[int, str]] = ..., props: _Optional[_Iterable[_Union[Pair, _Mapping[str, object]]]] = ..., gtid: _Optional[str] = ...) -> None: ...

class Pair(_message.Message):
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class RowChange(_message.Message):
    tableId: int
    eventType: int
    isDdl: bool
    sql: str
    rowDatas: _containers.RepeatedCompositeFieldContainer[RowData]
    props: _containers.RepeatedCompositeFieldContainer[Pair]
    ddlSchemaName: str
    def __init__(self, tableId: _Optional[int] = ..., eventType: _Optional[_Union[int, str]] = ..., isDdl: _Optional[bool] = ..., sql: _Optional[str] = ..., rowDatas: _Optional[_Iterable[_Union[RowData, _Mapping[str, object]]]] = ..., props: _Optional[_Iterable[_Union[Pair, _Mapping[str, object]]]] = ..., ddlSchemaName: _Optional[str] = ...) -> None: ...

class RowData(_message.Message):
    beforeColumns: _containers.RepeatedCompositeFieldContainer[Column]
    afterColumns: _containers.RepeatedCompositeFieldContainer[Column]
    props: _containers.RepeatedCompositeFieldContainer[Pair]
    def __init__(self, beforeColumns: _Optional[_Iterable[_Union[Column, _Mapping[str, object]]]] = ..., afterColumns: _Optional[_Iterable[_Union[Column, _Mapping[str, object]]]] = ..., props: _Optional[_Iterable[_Union[Pair, _Mapping[str, object]]]] = ...) -> None: ...

class Column(_message.Message):
    index: int
    sqlType: int
    name: str
    isKey: bool
    updated: bool
    isNull: bool
    props: _containers.RepeatedCompositeFieldContainer[Pair]
    value: str
    length: int
    mysqlType: str
    def __init__(self, index: _Optional[int] = ..., sqlType: _Optional[int] = ..., name: _Optional[str] = ..., isKey: _Optional[bool] = ..., updated: _Optional[bool] = ..., isNull: _Optional[bool] = ..., props: _Optional[_Iterable[_Union[Pair, _Mapping[str, object]]]] = ..., value: _Optional[str] = ..., length: _Optional[int] = ..., mysqlType: _Optional[str] = ...) -> None: ...

class TransactionBegin(_message.Message):
    executeTime: int
    transactionId: str
    props: _containers.RepeatedCompositeFieldContainer[Pair]
    threadId: int
    def __init__(self, executeTime: _Optional[int] = ..., transactionId: _Optional[str] = ..., props: _Optional[_Iterable[_Union[Pair, _Mapping[str, object]]]] = ..., threadId: _Optional[int] = ...) -> None: ...

class TransactionEnd(_message.Message):
    executeTime: int
    transactionId: str
    props: _containers.RepeatedCompositeFieldContainer[Pair]
    def __init__(self, executeTime: _Optional[int] = ..., transactionId: _Optional[str] = ..., props: _Optional[_Iterable[_Union[Pair, _Mapping[str, object]]]] = ...) -> None: ...
