"""TiDB's JSON of a table, field by field. Source: TiDB's model and types packages."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct, field


class Name(Struct, frozen=True, gc=False):
    """A name as written and in lower case."""

    original: str = field(name="O")
    lower: str = field(name="L")


def name_of(text: str) -> Name:
    return Name(text, text.lower())


class Type(Struct, frozen=True, kw_only=True):
    number: int = field(name="Tp")
    flags: int = field(default=0, name="Flag")
    length: int = field(default=-1, name="Flen")
    decimal: int = field(default=-1, name="Decimal")
    charset: str = field(default="", name="Charset")
    collation: str = field(default="", name="Collate")
    elements: list[str] | None = field(default=None, name="Elems")


class Column(Struct, frozen=True, kw_only=True):
    id: int
    name: Name
    offset: int
    type: Type
    origin_default: Any = None
    origin_default_bit: bytes | None = None
    default: Any = None
    default_bit: bytes | None = None
    default_is_expr: bool = False
    generated_expr_string: str = ""
    generated_stored: bool = False
    dependences: dict[str, Any] | None = None
    state: int
    comment: str = ""
    hidden: bool = False
    change_state_info: Any = None
    version: int = 2


class IndexColumn(Struct, frozen=True, kw_only=True):
    name: Name
    offset: int
    length: int = -1


class Index(Struct, frozen=True, kw_only=True):
    id: int
    name: Name = field(name="idx_name")
    table: Name = field(default=Name("", ""), name="tbl_name")
    columns: list[IndexColumn] | None = field(default=None, name="idx_cols")
    state: int
    comment: str = ""
    index_type: int = 1
    is_unique: bool = False
    is_primary: bool = False
    is_invisible: bool = False
    is_global: bool = False


class Definition(Struct, frozen=True, kw_only=True):
    """A partition."""

    id: int
    name: Name
    less_than: list[str] | None = None
    in_values: list[list[str]] | None = None


class Partition(Struct, frozen=True, kw_only=True):
    """The partitioning of a table."""

    type: int
    expression: str = field(default="", name="expr")
    columns: list[Name] | None = None
    enable: bool = True
    definitions: list[Definition] | None = None
    number: int = field(default=0, name="num")


class Table(Struct, frozen=True, kw_only=True):
    id: int
    name: Name
    charset: str = ""
    collation: str = field(default="", name="collate")
    columns: list[Column] | None = field(default=None, name="cols")
    indexes: list[Index] | None = field(default=None, name="index_info")
    state: int
    pk_is_handle: bool = False
    is_common_handle: bool = False
    common_handle_version: int = 0
    comment: str = ""
    max_col_id: int = 0
    max_idx_id: int = 0
    update_timestamp: int = 0
    partition: Partition | None = None
    view: Any = None
    sequence: Any = None
    version: int = 5
    temp_table_type: int = 0


class Database(Struct, frozen=True, kw_only=True):
    id: int
    name: Name = field(name="db_name")
    charset: str = ""
    collation: str = field(default="", name="collate")
    state: int = 0


_TABLES: Final = msgspec.json.Decoder(Table)
_DATABASES: Final = msgspec.json.Decoder(Database)
ENCODER: Final = msgspec.json.Encoder()
_T = TypeVar("_T")


def read_table(data: bytes) -> Table:
    """Read a table's JSON. Raises ValueError if it is invalid."""
    return decode(_TABLES, data)


def read_database(data: bytes) -> Database:
    """Read a database's JSON. Raises ValueError if it is invalid."""
    return decode(_DATABASES, data)


def decode(decoder: msgspec.json.Decoder[_T], data: bytes) -> _T:
    """Read JSON. Raises ValueError for anything that msgspec refuses, including nesting that is too deep."""
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from error
