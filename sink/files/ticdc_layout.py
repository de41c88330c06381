"""TiCDC's storage layout.

    <schema>/<table>/<table version>/<date>/CDC<number>.csv
    <schema>/<table>/<table version>/<date>/meta/CDC.index      name of the last file
    <schema>/<table>/meta/schema_<table version>_<checksum>.json
    metadata                                                    {"checkpoint-ts": ...}

Source: TiCDC's documentation of its storage sink, and its published code. TiCDC takes the date of the clock;
here it is that of the commit ts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...errors import CheckpointError, SinkError
from ...events import Ddl, RenameTables, Table, Ts, altered
from ..encoding.statement_kind import statement_kind, table_after
from .formats import Group
from .layout import HIDDEN, DatedFolder, checkpoint_text, date_of
from .ledger import State
from .options import DATE_LENGTHS, DirectoryOptions
from .store import Store
from .ticdc_schema import KEY_COLUMNS, columns_of, schema_checksum, schema_name, schema_text

_PREFIX: Final = "CDC"
_DATED: Final = re.compile(r"([^/]+/\d+/(\d{4}-\d\d-\d\d))/(?:meta/)?CDC[^/]*")
"""A file below its schema's folder: the folder of its day, and the day."""
_MOST_BYTES: Final = 240
"""Longest name of a table or schema: file systems take 255 bytes, with the suffix of a table's file."""


class _Known(Struct, frozen=True):
    """A table as its last schema file has it."""

    version: Ts
    table: Table


class TicdcLayout:
    """Knows the last version of each table, which the store has too, and numbers the files of each folder."""

    has_statements = False
    own_names = frozenset({HIDDEN})
    checks_statements = False

    def __init__(self, store: Store, options: DirectoryOptions) -> None:
        self._store: Final = store
        self._date_length: Final = DATE_LENGTHS[options.date_separator]
        self._width: Final = options.file_index_width
        self._more: Final = KEY_COLUMNS if options.adds_columns else []
        self.start()

    def start(self) -> None:
        self._known: dict[str, _Known | None] = {}
        self._numbers: dict[str, int] = {}
        self._definitions: dict[str, str] = {}
        self._marks: dict[str, str] = {}

    def path(self, group: Group, first: Ts, last: Ts, origin: str, suffix: str) -> str:  # noqa: ARG002
        table = group[0]
        assert table is not None
        folder = f"{_folder(table.schema, table.name)}/{self._version(table, first)}"
        if self._date_length:
            folder += f"/{date_of(first)[: self._date_length]}"
        number = self._numbers[folder] = self._last_number(folder, suffix) + 1
        name = f"{_PREFIX}{number:0{self._width}}{suffix}"
        self._marks[f"{folder}/meta/{_PREFIX}.index"] = f"{name}\n"
        return f"{folder}/{name}"

    def _last_number(self, folder: str, suffix: str) -> int:
        """Return the number of the last file. Files count that the index lacks, and those that a reader
        removed."""
        if folder in self._numbers:
            return self._numbers[folder]
        index = self._store.read(f"{folder}/meta/{_PREFIX}.index") or b""
        names = [*self._store.names(folder), index.decode().strip()]
        digits = [name.removeprefix(_PREFIX).removesuffix(suffix) for name in names]
        return max([int(text) for text in digits if text.isdecimal()], default=0)

    def _version(self, table: Table, ts: Ts) -> Ts:
        """Return the version of a table as its rows have it; a new one if its definition is new."""
        known = self._last(table.schema, table.name)
        if known is not None:
            if known.table is table:
                return known.version
            if columns_of(known.table) == columns_of(table):
                self._known[table.full_name] = _Known(known.version, table)
                return known.version
        self._define(table, ts)
        return ts

    def note(self, ddl: Ddl) -> None:
        """Write a schema file for each table of the statement, if its definition is known."""
        number = statement_kind(ddl).number if ddl.query else 0
        for table in self._after(ddl):
            self._define(table, ddl.commit_ts, ddl.query, number)

    def _after(self, ddl: Ddl) -> list[Table]:
        """Return the tables of a statement, as they are after it; a dropped one as it was."""
        if (table := table_after(ddl)) is not None:
            return [table]
        if isinstance(ddl.actions[0], RenameTables):
            olds = [(self._last(*old), new) for old, new in ddl.actions[0].pairs]
            return [replace(old.table, schema=new[0], name=new[1]) for old, new in olds if old is not None]
        known = self._last(ddl.schema, ddl.table)
        if known is None:
            return []  # its file is written with its first row
        return [altered(known.table, ddl.actions)]

    def _define(self, table: Table, version: Ts, query: str = "", number: int = 0) -> None:
        columns = [*columns_of(table), *self._more]
        folder = _folder(table.schema, table.name)
        name = schema_name(version, schema_checksum(table.schema, table.name, columns))
        self._definitions[f"{folder}/meta/{name}"] = schema_text(table, version, columns, query, number)
        known = self._known[table.full_name] = _Known(version, table)
        self._definitions[_known_name(folder)] = msgspec.json.encode(known).decode()

    def _last(self, schema: str, name: str) -> _Known | None:
        """Return a table as its last schema file has it; None if there is no such."""
        full = f"{schema}.{name}"
        if full not in self._known:
            path = _known_name(_folder(schema, name))
            content = self._store.read(path)
            try:
                self._known[full] = (content and msgspec.json.decode(content, type=_Known)) or None
            except msgspec.DecodeError as error:
                raise CheckpointError(f"{self._store.name}/{path} is damaged: {error}") from error
        return self._known[full]

    def announce(self, state: State) -> None:
        pass

    def dated(self, store: Store) -> Iterator[DatedFolder]:
        for schema in store.entries():
            if schema != HIDDEN:
                for name in store.names(schema):
                    if match := _DATED.fullmatch(name):
                        yield DatedFolder(f"{schema}/{match[1]}", match[2])

    def definitions(self) -> dict[str, str]:
        definitions, self._definitions = self._definitions, {}
        return definitions

    def marks(self, ts: Ts | None) -> dict[str, str]:
        marks, self._marks = self._marks, {}
        return marks if ts is None else {**marks, "metadata": checkpoint_text(ts)}

    def check(self, ddl: Ddl) -> None:
        pass

    def fit(self, group: Group, name: str) -> None:
        pass

    def close(self) -> None:
        pass


def _folder(schema: str, name: str) -> str:
    """Return a table's folder. Raises SinkError for names that TiCDC's layout can't contain."""
    for part in (schema, name):
        is_reserved = part in (".", "..", HIDDEN)
        if is_reserved or "/" in part or not part.isprintable() or len(part.encode()) > _MOST_BYTES:
            raise SinkError(
                f"table {schema}.{name}: the layout ticdc can't have a folder of this name: leave the table "
                'out, or give layout = "tables"',
                f"{schema}.{name}",
            )
    return f"{schema}/{name}"


def _known_name(folder: str) -> str:
    return f"{HIDDEN}/tables/{folder}.json"
