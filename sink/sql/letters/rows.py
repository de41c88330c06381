"""The letters of one feed in their table, by SQL that every target understands."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from ....codec.exact_json import decode_values, encode_values
from ....dialects.own_tables import OwnTables
from ....errors import CheckpointError
from ....events import Row, Table
from .keys import Head
from .letter import Letter, within

LETTERS_TABLE: Final = "tidemill_dead_letters"
VERSIONS_TABLE: Final = "tidemill_dead_letters_version"
"""One row per feed, which who changes its letters locks."""
_ALTERED: Final = 1
_INCOMPLETE: Final = 2
"""Bits of the column `altered`."""

_COLUMNS: Final = "id,tbl,op,before_row,after_row,ts,position,reason,statement,time,definition,altered"


class BoxVersion(NamedTuple):
    last_id: int
    """The last number of a letter."""
    version: int
    """Number of SQL transactions that changed the letters."""


class LetterRows:
    """Reads and changes the letters of one feed, in the SQL transaction that is open if one is."""

    def __init__(self, tables: OwnTables, feed: str) -> None:
        self._tables = tables
        self._feed = feed
        self._letters = f"{tables.home}{LETTERS_TABLE}"
        self._versions = f"{tables.home}{VERSIONS_TABLE}"

    def exists(self) -> bool:
        """Return True if letters may be there."""
        return self._tables.has(LETTERS_TABLE) and self._tables.has(VERSIONS_TABLE)

    def create(self) -> None:
        """Create missing tables, outside of a transaction; the right to create is needed only then."""
        name, text = self._tables.name_type, self._tables.text_type
        columns = {
            LETTERS_TABLE: (
                f"feed {name} NOT NULL, id BIGINT NOT NULL, tbl {text} NOT NULL, op {name} NOT NULL, "
                f"before_row {text}, after_row {text}, ts BIGINT NOT NULL, position {text} NOT NULL, "
                f"reason {text} NOT NULL, statement {text} NOT NULL, time {text} NOT NULL, "
                f"definition {text} NOT NULL, altered INT NOT NULL, PRIMARY KEY (feed, id)"
            ),
            VERSIONS_TABLE: f"feed {name} PRIMARY KEY, last_id BIGINT NOT NULL, version BIGINT NOT NULL",
        }
        for table, definition in columns.items():
            if not self._tables.has(table):
                options = self._tables.table_options
                self._query(f"CREATE TABLE IF NOT EXISTS {self._tables.home}{table} ({definition}){options}")
        if not self._query(f"SELECT 1 FROM {self._versions} WHERE feed=?", self._feed):
            self._query(f"INSERT INTO {self._versions} VALUES (?,0,0)", self._feed)

    def lock(self) -> BoxVersion:
        """Have everybody else who changes or locks the letters wait until the end of the transaction."""
        return self._version(self._tables.for_update)

    def version(self) -> int:
        return self._version("").version

    def _version(self, end: str) -> BoxVersion:
        rows = self._query(f"SELECT last_id,version FROM {self._versions} WHERE feed=?{end}", self._feed)
        return BoxVersion(*map(int, rows[0])) if rows else BoxVersion(0, 0)

    def set_version(self, version: BoxVersion) -> None:
        """Store the next version; the letters are locked."""
        self._query(
            f"UPDATE {self._versions} SET last_id=?,version=? WHERE feed=?",
            version.last_id,
            version.version,
            self._feed,
        )

    def heads(self, *, locked: bool = False) -> list[Head]:
        """Return tables and keys of all letters; with `locked` as they are now."""
        return [Head(one.table.full_name, one.keys) for one in self.load(locked=locked)]

    def load(self, *, locked: bool = False) -> list[Letter]:
        """Return all letters by commit ts and number; with `locked` as they are now, even if the
        transaction is older."""
        end = self._tables.for_update if locked else ""
        rows = self._query(
            f"SELECT {_COLUMNS} FROM {self._letters} WHERE feed=? ORDER BY ts,id{end}", self._feed
        )
        return [self._letter(row) for row in rows]

    def add(self, letters: Iterable[Letter]) -> None:
        marks = ",".join("?" * (len(_COLUMNS.split(",")) + 1))
        most = self._tables.max_row_bytes
        for letter in letters:
            one = letter if most is None else within(letter, most)
            self._query(
                f"INSERT INTO {self._letters} (feed,{_COLUMNS}) VALUES ({marks})",
                self._feed,
                one.id,
                one.table.full_name,
                one.op,
                _text(one.before),
                _text(one.after),
                one.ts,
                one.position,
                one.reason,
                one.statement,
                one.time,
                msgspec.json.encode(one.table).decode(),
                _ALTERED * one.altered | _INCOMPLETE * one.incomplete,
            )

    def delete(self, ids: Collection[int]) -> None:
        if ids:
            self._query(f"DELETE FROM {self._letters} WHERE feed=? AND id IN ({_listed(ids)})", self._feed)

    def explain(self, letter: Letter) -> None:
        """Store the letter's reason."""
        self._query(
            f"UPDATE {self._letters} SET reason=? WHERE feed=? AND id=?", letter.reason, self._feed, letter.id
        )

    def alter(self, ids: Collection[int]) -> None:
        """Note that the letters' table is another one now."""
        if ids:
            self._query(
                f"UPDATE {self._letters} SET altered=altered|{_ALTERED} "
                f"WHERE feed=? AND id IN ({_listed(ids)})",
                self._feed,
            )

    def _query(self, statement: str, *values: str | int | None) -> list[Row]:
        return self._tables.query(statement, *values)

    def _letter(self, row: Sequence[Any]) -> Letter:
        number, _, op, before, after, ts, position, reason, statement, time, definition, altered = row
        try:
            return Letter(
                id=int(number),
                table=msgspec.json.decode(definition, type=Table),
                op=op,
                before=None if before is None else decode_values(before),
                after=None if after is None else decode_values(after),
                ts=int(ts),
                position=position,
                reason=reason,
                statement=statement,
                time=time,
                altered=bool(altered & _ALTERED),
                incomplete=bool(altered & _INCOMPLETE),
            )
        except ValueError as error:
            raise CheckpointError(f"{self._letters}: dead letter {number} is damaged: {error}") from error


def numbered(letters: Iterable[Letter], last_id: int) -> list[Letter]:
    """Return the letters with the numbers after `last_id`."""
    return [replace(one, id=number) for number, one in enumerate(letters, last_id + 1)]


def _text(row: Row | None) -> str | None:
    return None if row is None else encode_values(row)


def _listed(ids: Collection[int]) -> str:
    return ",".join(map(str, sorted(ids)))
