"""A dead letter: a change that wasn't applied, with the reason."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ....codec.exact_json import encode_values
from ....events import Op, Row, RowChange, Table, Ts

FOLLOWS: Final = "an earlier change of the same row is a dead letter"
"""Reason of a change that would have overtaken another one."""

_SMALL_BYTES: Final = 1024
"""Maximum size of values that a letter keeps in any case."""


class Letter(Struct, frozen=True):
    """A change that wasn't applied."""

    id: int
    """Running number in the feed's letters, never used twice; 0 before it is stored."""
    table: Table
    """The source's table, at the version of the change."""
    op: Op
    before: Row | None
    after: Row | None
    ts: Ts
    """Commit ts of its transaction."""
    position: str
    """The source's position after its transaction; empty inside of a transaction in several batches."""
    reason: str
    statement: str
    """The statement that was rejected, shortened."""
    time: str
    """Time when it was rejected, in UTC."""
    altered: bool = False
    """True if the table was altered after the change: then it can't be applied any more."""
    incomplete: bool = False
    """True if values that the target can't store are left out, None in their place: then it can't be applied
    either."""

    @property
    def change(self) -> RowChange:
        return RowChange(self.ts, 0, self.table, self.op, self.before, self.after)

    @property
    def keys(self) -> tuple[str, ...]:
        """Texts of the keys before and after, without repetition; empty for a table without a key."""
        return keys_of(self.change)


def keys_of(change: RowChange) -> tuple[str, ...]:
    """Return the texts of a change's keys: one, two if it changes the key, none without a key."""
    index = change.table.key
    rows = [row for row in (change.before, change.after) if row is not None]
    return tuple(dict.fromkeys(encode_values([row[i] for i in index]) for row in rows)) if index else ()


def within(letter: Letter, max_bytes: int) -> Letter:
    """Return the letter, or if it is larger one without its large values outside of the key."""
    rows = [row for row in (letter.before, letter.after) if row is not None]
    sizes = [len(encode_values([value]).encode()) for row in rows for value in row]
    if sum(sizes) <= max_bytes:
        return letter
    columns = letter.table.columns
    large = {
        i % len(columns)
        for i, size in enumerate(sizes)
        if size > _SMALL_BYTES and i % len(columns) not in letter.table.key
    }
    before, after = (
        None if row is None else tuple(None if i in large else value for i, value in enumerate(row))
        for row in (letter.before, letter.after)
    )
    names = ", ".join(columns[i].name for i in sorted(large))
    reason = f"{letter.reason} (the target can't store the letter with its values of {names})"
    return replace(letter, before=before, after=after, reason=reason, incomplete=True)


def storable(text: str) -> str:
    """Return a text for people that every database can store: without NUL and lone surrogates."""
    return text.replace("\0", "\\0").encode(errors="backslashreplace").decode()


def time_text(seconds: float) -> str:
    """Return a time in Unix seconds as text."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
