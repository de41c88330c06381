"""CREATE TABLE to TableInfo, as TiDB v8.1 makes it: a primary key is clustered unless it says otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from ...codec.tidb.column_type import ColumnFlag, Type
from ...codec.tidb.table_info import ColumnInfo, DbInfo, IndexColumn, IndexInfo, TableInfo
from .columns import parse_charset, parse_column
from .partition import parse_partition
from .tokens import Tokens

_INTEGERS: Final = (Type.TINY, Type.SHORT, Type.INT24, Type.LONG, Type.LONGLONG)
_NO_DEFAULT: Final = 4096


def parse_table(tokens: Tokens, name: str, database: DbInfo, new_id: Callable[[], int]) -> TableInfo:
    """Parse the text after CREATE TABLE and the name; `new_id` returns the ids of the table and its
    partitions.

    Raises ValueError for syntax that the emulator doesn't support.
    """
    charset, collation = _find_charset(tokens, database)
    body = _Body(charset, collation)
    tokens.expect("(")
    body.parse(tokens)
    while tokens.has(","):
        body.parse(tokens)
    tokens.expect(")")
    table_id = new_id()
    info = body.table(table_id, name)
    _options(tokens)
    if tokens.has("partition", "by"):
        info = replace(info, partition=parse_partition(tokens, new_id))
    if tokens.next is not None:
        raise tokens.unexpected("the end")
    return info


def _find_charset(tokens: Tokens, database: DbInfo) -> tuple[str, str]:
    """Return the table's own charset and collation, which follow its columns; otherwise the database's."""
    ahead = Tokens(tokens.statement)
    while ahead.next is not None and not ahead.has("("):
        ahead.take()
    depth = 1
    while depth and ahead.next is not None:
        token = ahead.take()
        depth += (token.kind == "mark") * ((token == "(") - (token == ")"))
    return _options(ahead, database.charset, database.collation)


_OPTIONS: Final = (
    *("engine", "comment", "auto_increment", "auto_id_cache"),
    *("shard_row_id_bits", "pre_split_regions"),
)
"""Options that change no row; they are skipped."""


def _options(tokens: Tokens, charset: str = "", collation: str = "") -> tuple[str, str]:
    while True:
        before = tokens.next
        tokens.has("default")
        charset, collation = parse_charset(tokens, charset, collation)
        for option in _OPTIONS:
            if tokens.has(option):
                tokens.has("=")
                tokens.take()
        tokens.has(",")
        if tokens.next is before:
            return charset, collation


class _Body:
    """Parses the definitions between the parentheses."""

    def __init__(self, charset: str, collation: str) -> None:
        self._charset = charset
        self._collation = collation
        self._columns: list[ColumnInfo] = []
        self._indexes: list[tuple[str, list[tuple[str, int]], bool]] = []
        self._key: list[tuple[str, int]] = []
        self._nonclustered = False

    def parse(self, tokens: Tokens) -> None:
        if tokens.has("primary", "key"):
            self._key = parse_parts(tokens)
            self._nonclustered = tokens.has("nonclustered")
            tokens.has("clustered")
        elif unique := tokens.has("unique", "key") or tokens.has("unique", "index") or tokens.has("unique"):
            self._add_index(tokens, unique=unique)
        elif tokens.has("key") or tokens.has("index"):
            self._add_index(tokens, unique=False)
        else:
            column, nonclustered = parse_column(tokens, self._charset, self._collation)
            if column.flags & ColumnFlag.PRI_KEY:
                self._key, self._nonclustered = [(column.name, -1)], nonclustered
            self._columns.append(replace(column, id=len(self._columns) + 1, offset=len(self._columns)))

    def _add_index(self, tokens: Tokens, *, unique: bool) -> None:
        name = tokens.name() if tokens.next != "(" else ""
        parts = parse_parts(tokens)
        self._indexes.append((name or parts[0][0], parts, unique))

    def table(self, table_id: int, name: str) -> TableInfo:
        columns = [self._as_key(column) for column in self._columns]
        is_handle = self._is_handle(columns)
        indexes = [
            IndexInfo(id=0, name=index, columns=index_columns(columns, parts), unique=unique)
            for index, parts, unique in self._indexes
        ]
        if self._key and not is_handle:
            key = index_columns(columns, self._key)
            indexes.insert(0, IndexInfo(id=0, name="PRIMARY", columns=key, unique=True, primary=True))
        indexes = [replace(index, id=number) for number, index in enumerate(indexes, 1)]
        is_common = bool(self._key) and not is_handle and not self._nonclustered
        return TableInfo(
            id=table_id,
            name=name,
            columns=tuple(columns),
            indexes=tuple(indexes),
            charset=self._charset,
            collation=self._collation,
            pk_is_handle=is_handle,
            is_common_handle=is_common,
            common_handle_version=int(is_common),
            max_column_id=len(columns),
            max_index_id=len(indexes),
        )

    def _as_key(self, column: ColumnInfo) -> ColumnInfo:
        if column.name.lower() not in {name.lower() for name, _ in self._key}:
            return column
        flags = column.flags | ColumnFlag.PRI_KEY | ColumnFlag.NOT_NULL
        if column.default is None and not flags & ColumnFlag.AUTO_INCREMENT:
            flags |= _NO_DEFAULT
        return replace(column, flags=flags)

    def _is_handle(self, columns: Sequence[ColumnInfo]) -> bool:
        if len(self._key) != 1 or self._nonclustered:
            return False
        (name, _) = self._key[0]
        return any(column.name.lower() == name.lower() and column.type in _INTEGERS for column in columns)


def parse_parts(tokens: Tokens) -> list[tuple[str, int]]:
    """Parse the columns of a key, each with the length of its prefix or -1."""
    tokens.expect("(")
    parts = []
    while True:
        name, length = tokens.name(), -1
        if tokens.has("("):
            length = tokens.number()
            tokens.expect(")")
        parts.append((name, length))
        if not tokens.has(","):
            tokens.expect(")")
            return parts


def index_columns(columns: Sequence[ColumnInfo], parts: Sequence[tuple[str, int]]) -> tuple[IndexColumn, ...]:
    """Return a key's columns. Raises ValueError for a column that doesn't exist."""
    key_columns = []
    for name, length in parts:
        column = find_column(columns, name)
        length = -1 if length >= column.length else length
        key_columns.append(IndexColumn(column.name, column.offset, length))
    return tuple(key_columns)


def find_column(columns: Sequence[ColumnInfo], name: str) -> ColumnInfo:
    for column in columns:
        if column.name.lower() == name.lower():
            return column
    raise ValueError(f"there is no column {name}; there are {', '.join(column.name for column in columns)}")
