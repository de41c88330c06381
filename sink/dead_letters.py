"""Changes that a target rejected, as people see and decide about them."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from ..events import Op, Row, Ts


class DeadLetter(Struct, frozen=True):
    """A change that wasn't applied."""

    id: int
    """Running number in the feed's letters in this target."""
    table: str
    """Full name of the source's table."""
    key: str
    """The row's key as "id=7", or all its values if the table has none."""
    op: Op
    columns: tuple[str, ...]
    """Names of the table's columns, at the time of the change."""
    before: Row | None
    """The row before the change; None for an insert."""
    after: Row | None
    """The row after the change; None for a delete."""
    ts: Ts
    """Commit ts of its transaction."""
    position: str
    """The source's position after its transaction; empty if that isn't known."""
    reason: str
    statement: str
    """The statement that was rejected, shortened; empty for a change that waits for another one."""
    time: str
    """Time of the rejection, ISO 8601 in UTC."""


class Retried(Struct, frozen=True):
    """Result of applying dead letters again."""

    applied: tuple[int, ...]
    """Numbers of the letters that are applied and gone."""
    left: tuple[DeadLetter, ...]
    """Letters that were rejected again, with their new reason. The other letters of their rows are left,
    too."""


class DeadLetters(Protocol):
    """The dead letters of one feed in one target; the feed may run meanwhile.

    `table` is a full name, `number` that of one letter; None: all. Methods raise Retryable, SinkError or
    CheckpointError.
    """

    def list(self, table: str | None = None, number: int | None = None) -> list[DeadLetter]: ...

    def retry(self, table: str | None = None, number: int | None = None) -> Retried:
        """Apply letters in order, those of a row in one SQL transaction: with a letter, all of its row."""

    def drop(self, table: str | None = None, number: int | None = None) -> tuple[int, ...]:
        """Delete letters; return their numbers."""

    def close(self) -> None: ...
