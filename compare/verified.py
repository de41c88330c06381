"""Progress of the verification of one sink, in a file of the feed's data directory."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..dialects.read import Key
from ..engine.verification import MOST_TABLES, Divergence
from ..errors import StoreError
from ..events import Table
from ..store import disk
from .chunks import KeyMark
from .finding import Difference
from .report import keys_of, line_of

log = logging.getLogger("tidemill")

SHOWN_ROWS: Final = 5
"""Number of a divergence's rows that are kept."""
_KINDS: Final = {
    kind.__name__: kind for kind in (int, float, str, bytes, Decimal, date, datetime, timedelta, type(None))
}
_StoredKey = list[tuple[str, Any]]
"""The kind and the JSON form of each value."""


class Verified(Struct):
    """Tables and rows compared so far. Tables of a pass are compared in the order of their full names."""

    began: float | None = None
    """Beginning of the pass, in Unix seconds; None before the first one."""
    is_whole: bool = False
    """True if the pass is complete."""
    done: str = ""
    """The last table that was compared as a whole."""
    table: str = ""
    """The table that is being compared, ..."""
    key_columns: tuple[str, ...] = ()
    """... the columns of its key with their kinds, ..."""
    source_key: _StoredKey | None = None
    stored_key: _StoredKey | None = None
    """... the last key compared, on both sides; None: none yet, ..."""
    divergence: Divergence | None = None
    rows_reached: int = 0
    """... and up to there what differs, and the value of `rows`."""
    found: Divergence | None = None
    """Differences of the table, after that key too."""
    rows: int = 0
    """Number of rows compared in this pass."""
    moving: int = 0
    rows_compared: int = 0
    """Number of rows compared in earlier passes."""
    passes: int = 0
    whole_began: float | None = None
    whole_ended: float | None = None
    whole_rows: int = 0
    """Number of rows of the last whole pass."""
    repaired: int = 0
    divergences: dict[str, Divergence] = {}
    """Tables that differed when they were compared last as a whole, by full name."""

    # --- passes

    def begin(self, now: float) -> None:
        self.began, self.is_whole, self.done = now, False, ""
        self.rows_compared += self.rows
        self.rows = self.rows_reached = self.moving = 0
        self._leave_table()

    def end(self, now: float, known: Collection[str]) -> None:
        """Note the end of a pass, in which the tables of these full names were compared."""
        self.is_whole, self.passes = True, self.passes + 1
        self.whole_began, self.whole_ended, self.whole_rows = self.began, now, self.rows
        self.divergences = {name: one for name, one in self.divergences.items() if name in known}

    # --- tables

    def mark(self, table: Table) -> KeyMark | None:
        """Return the end of what was compared of a table; None at its beginning. Rows of another key, or of
        another table before, aren't compared."""
        self.rows, self.found = self.rows_reached, self.divergence
        if self.table == table.full_name and self.key_columns == _key_columns(table):
            source, stored = _key(self.source_key), _key(self.stored_key)
            return None if source is None or stored is None else KeyMark(source, stored)
        self._leave_table()
        self.table, self.key_columns = table.full_name, _key_columns(table)
        return None

    def reach(self, mark: KeyMark) -> None:
        """Note that the table's rows up to a key are compared."""
        source, stored = _stored(mark.source), _stored(mark.stored)
        if source is not None and stored is not None:
            self.source_key, self.stored_key = source, stored
            self.divergence, self.rows_reached = self.found, self.rows

    def differ(self, table: str, detail: str, differences: Sequence[Difference], now: float) -> None:
        """Note differences of the table that is being compared, or of the table itself, once more."""
        one = self.found
        if one is None or one.table != table:
            before = self.divergences.get(table)
            one = Divergence(table, found=now if before is None else before.found)
        counts = {
            kind: getattr(one, kind) + sum(each.count for each in differences if each.kind == kind)
            for kind in ("missing", "extra", "changed")
        }
        lines = [line_of(each) for each in differences[: SHOWN_ROWS - len(one.rows)]]
        keys = [keys_of(each.key) for each in differences]
        self.found = replace(
            one,
            **counts,
            first=one.first or (keys[0] if keys else ""),
            last=keys[-1] if keys else one.last,
            rows=(*one.rows, *lines),
            detail=detail,
        )

    def finish_table(self, name: str) -> None:
        """Note that a table is compared as a whole."""
        self.divergences.pop(name, None)
        if self.found is not None and self.found.table == name:
            self.divergences[name] = self.found
        self.done, self.rows_reached = name, self.rows
        self._leave_table()

    def _leave_table(self) -> None:
        self.table, self.key_columns = "", ()
        self.source_key = self.stored_key = self.divergence = self.found = None

    def current(self) -> dict[str, Divergence]:
        """Return the divergences as they were found last: those of the pass that goes on before others."""
        present = self.found
        return self.divergences if present is None else self.divergences | {present.table: present}


class VerifiedFile:
    """Replaced atomically, so a killed process goes on from its last state."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._content = b""

    def load(self) -> Verified:
        """Return what was saved; an empty state if there is none, or if it can't be read, which is logged."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Verified)
        except FileNotFoundError:
            pass
        except (OSError, msgspec.DecodeError) as error:
            log.warning("%s can't be read: the verification begins again: %s", self._path, error)
        return Verified()

    def save(self, verified: Verified) -> None:
        """Raises StoreError."""
        content = msgspec.json.encode(verified)
        if content == self._content:
            return
        try:
            disk.replace(self._path, content)
        except OSError as error:
            raise StoreError(f"{self._path} can't be written: {error.strerror}") from error
        self._content = content


def listed(divergences: dict[str, Divergence]) -> tuple[Divergence, ...]:
    """Return the divergences of a status: those with most rows first."""
    ordered = sorted(divergences.values(), key=lambda one: (-one.differences, one.table))
    return tuple(ordered[:MOST_TABLES])


def _key_columns(table: Table) -> tuple[str, ...]:
    return tuple(f"{table.columns[i].name} {table.columns[i].kind}" for i in table.key)


def _stored(key: Key) -> _StoredKey | None:
    """Return a key in its form for the file; None if it has a value that the file can't hold."""
    if any(type(value).__name__ not in _KINDS for value in key):
        return None
    return [(type(value).__name__, msgspec.to_builtins(value)) for value in key]


def _key(stored: _StoredKey | None) -> Key | None:
    if stored is None:
        return None
    return tuple([msgspec.convert(value, _KINDS[kind], strict=False) for kind, value in stored])
