"""TiDB's descriptions of databases and tables: JSON to structs, and back.

Only the fields for rows, keys and schema changes are kept; the other fields are written with TiDB's zero
values.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from . import info_json as json

PUBLIC: Final = 5
"""The state of public objects (SchemaState)."""

_VERSION: Final = 5
"""Version of the TableInfo structure: since TiDB v6.6, where indexes of a clustered key changed."""


class ColumnInfo(Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: int
    name: str
    offset: int
    type: int
    """MySQL's number for the type."""
    flags: int = 0
    length: int = -1
    decimal: int = -1
    charset: str = ""
    collation: str = ""
    elements: tuple[str, ...] = ()
    state: int = PUBLIC
    default: Any = None
    default_bit: bytes | None = None
    default_is_expression: bool = False
    origin_default: Any = None
    origin_default_bit: bytes | None = None
    generated: str = ""
    """The expression of a generated column."""
    stored: bool = False
    comment: str = ""
    hidden: bool = False
    version: int = 2


class IndexColumn(Struct, frozen=True, omit_defaults=True):
    name: str
    offset: int
    length: int = -1


class IndexInfo(Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: int
    name: str
    columns: tuple[IndexColumn, ...]
    unique: bool = False
    primary: bool = False
    state: int = PUBLIC


class PartitionDefinition(Struct, frozen=True):
    id: int
    name: str
    less_than: tuple[str, ...] = ()


class PartitionInfo(Struct, frozen=True, kw_only=True):
    type: int = 1
    expression: str = ""
    columns: tuple[str, ...] = ()
    enabled: bool = True
    definitions: tuple[PartitionDefinition, ...] = ()


class TableInfo(Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: int
    name: str
    columns: tuple[ColumnInfo, ...] = ()
    indexes: tuple[IndexInfo, ...] = ()
    charset: str = "utf8mb4"
    collation: str = "utf8mb4_bin"
    state: int = PUBLIC
    pk_is_handle: bool = False
    is_common_handle: bool = False
    common_handle_version: int = 0
    comment: str = ""
    max_column_id: int = 0
    max_index_id: int = 0
    update_ts: int = 0
    partition: PartitionInfo | None = None
    is_view: bool = False
    is_sequence: bool = False
    is_temporary: bool = False


class DbInfo(Struct, frozen=True, kw_only=True):
    id: int
    name: str
    charset: str = "utf8mb4"
    collation: str = "utf8mb4_bin"
    state: int = PUBLIC


def decode_db_info(data: bytes) -> DbInfo:
    """Read a database's JSON. Raises ValueError if it is invalid."""
    database = json.read_database(data)
    return DbInfo(
        id=database.id,
        name=database.name.original,
        charset=database.charset,
        collation=database.collation,
        state=database.state,
    )


def encode_db_info(info: DbInfo) -> bytes:
    """Encode the JSON that TiDB reads."""
    return json.ENCODER.encode(
        json.Database(
            id=info.id,
            name=json.name_of(info.name),
            charset=info.charset,
            collation=info.collation,
            state=info.state,
        )
    )


def decode_table_info(data: bytes) -> TableInfo:
    """Read a table's JSON. Raises ValueError if it is invalid."""
    table = json.read_table(data)
    columns, parts = (
        table.columns or (),
        [part for each in table.indexes or () for part in each.columns or ()],
    )
    if not all(0 <= part.offset < len(columns) for part in parts):
        raise ValueError(f"an index of table {table.name.original} has a column that isn't there")
    return TableInfo(
        id=table.id,
        name=table.name.original,
        columns=tuple(map(_column, columns)),
        indexes=tuple(map(_index, table.indexes or ())),
        charset=table.charset,
        collation=table.collation,
        state=table.state,
        pk_is_handle=table.pk_is_handle,
        is_common_handle=table.is_common_handle,
        common_handle_version=table.common_handle_version,
        comment=table.comment,
        max_column_id=table.max_col_id,
        max_index_id=table.max_idx_id,
        update_ts=table.update_timestamp,
        partition=_partition(table.partition) if table.partition else None,
        is_view=table.view is not None,
        is_sequence=table.sequence is not None,
        is_temporary=table.temp_table_type != 0,
    )


def encode_table_info(info: TableInfo) -> bytes:
    """Encode the JSON that TiDB reads."""
    return json.ENCODER.encode(
        json.Table(
            id=info.id,
            name=json.name_of(info.name),
            columns=list(map(_json_column, info.columns)),
            indexes=list(map(_json_index, info.indexes)),
            charset=info.charset,
            collation=info.collation,
            state=info.state,
            pk_is_handle=info.pk_is_handle,
            is_common_handle=info.is_common_handle,
            common_handle_version=info.common_handle_version,
            comment=info.comment,
            max_col_id=info.max_column_id,
            max_idx_id=info.max_index_id,
            update_timestamp=info.update_ts,
            partition=_json_partition(info.partition) if info.partition else None,
            view={} if info.is_view else None,
            sequence={} if info.is_sequence else None,
            temp_table_type=int(info.is_temporary),
        )
    )


def partition_ids(info: TableInfo) -> tuple[int, ...]:
    """Return the ids in the keys of rows of a partitioned table; empty for a table without partitions."""
    partition = info.partition
    if partition is None or not partition.enabled:
        return ()
    return tuple(definition.id for definition in partition.definitions)


def holds_rows(info: TableInfo) -> bool:
    """True if the table has rows in TiKV: not for views, sequences and temporary tables."""
    return not (info.is_view or info.is_sequence or info.is_temporary)


def row_info(info: TableInfo) -> TableInfo:
    """Return only what describes the table's rows and its primary key."""
    return TableInfo(
        id=info.id,
        name=info.name,
        columns=tuple([replace(column, comment="") for column in info.columns]),
        indexes=tuple([index for index in info.indexes if index.primary]),
        charset=info.charset,
        collation=info.collation,
        pk_is_handle=info.pk_is_handle,
        is_common_handle=info.is_common_handle,
    )


# --- the parts -----------------------------------------------------------------------------------


def _column(column: json.Column) -> ColumnInfo:
    type_ = column.type
    return ColumnInfo(
        id=column.id,
        name=column.name.original,
        offset=column.offset,
        type=type_.number,
        flags=type_.flags,
        length=type_.length,
        decimal=type_.decimal,
        charset=type_.charset,
        collation=type_.collation,
        elements=tuple(type_.elements or ()),
        state=column.state,
        default=column.default,
        default_bit=column.default_bit,
        default_is_expression=column.default_is_expr,
        origin_default=column.origin_default,
        origin_default_bit=column.origin_default_bit,
        generated=column.generated_expr_string,
        stored=column.generated_stored,
        comment=column.comment,
        hidden=column.hidden,
        version=column.version,
    )


def _json_column(info: ColumnInfo) -> json.Column:
    return json.Column(
        id=info.id,
        name=json.name_of(info.name),
        offset=info.offset,
        type=json.Type(
            number=info.type,
            flags=info.flags,
            length=info.length,
            decimal=info.decimal,
            charset=info.charset,
            collation=info.collation,
            elements=list(info.elements) or None,
        ),
        state=info.state,
        default=info.default,
        default_bit=info.default_bit,
        default_is_expr=info.default_is_expression,
        origin_default=info.origin_default,
        origin_default_bit=info.origin_default_bit,
        generated_expr_string=info.generated,
        generated_stored=info.stored,
        comment=info.comment,
        hidden=info.hidden,
        version=info.version,
    )


def _index(index: json.Index) -> IndexInfo:
    return IndexInfo(
        id=index.id,
        name=index.name.original,
        columns=tuple(
            IndexColumn(column.name.original, column.offset, column.length) for column in index.columns or ()
        ),
        unique=index.is_unique,
        primary=index.is_primary,
        state=index.state,
    )


def _json_index(info: IndexInfo) -> json.Index:
    return json.Index(
        id=info.id,
        name=json.name_of(info.name),
        columns=[
            json.IndexColumn(name=json.name_of(column.name), offset=column.offset, length=column.length)
            for column in info.columns
        ],
        is_unique=info.unique,
        is_primary=info.primary,
        state=info.state,
    )


def _partition(partition: json.Partition) -> PartitionInfo:
    return PartitionInfo(
        type=partition.type,
        expression=partition.expression,
        columns=tuple(name.original for name in partition.columns or ()),
        enabled=partition.enable,
        definitions=tuple(
            PartitionDefinition(definition.id, definition.name.original, tuple(definition.less_than or ()))
            for definition in partition.definitions or ()
        ),
    )


def _json_partition(info: PartitionInfo) -> json.Partition:
    return json.Partition(
        type=info.type,
        expression=info.expression,
        columns=[json.name_of(name) for name in info.columns],
        enable=info.enabled,
        definitions=[
            json.Definition(id=d.id, name=json.name_of(d.name), less_than=list(d.less_than) or None)
            for d in info.definitions
        ],
        number=len(info.definitions),
    )
