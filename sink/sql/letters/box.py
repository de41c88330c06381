"""The dead letters of a feed in a SQL target, looked at from outside of the feed."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import count
from typing import Final, TypeVar

from msgspec.structs import replace

from ....dialects.database import Database, StatementRejected, describe_row
from ....dialects.groups import cut_groups
from ....errors import Retryable, SinkError, TidemillError
from ....events import runs_of
from ...dead_letters import DeadLetter, Retried
from .letter import Letter
from .rows import BoxVersion, LetterRows

BOX_SECONDS: Final = 30.0
"""Timeout for another writer of a target that has one at a time."""
ALTERED: Final = (
    "the table was altered after this change: correct the row by hand and drop the letter, or load the table "
    "again by tidemill snapshot"
)
INCOMPLETE: Final = (
    "the letter lacks values that the target couldn't store: raise the target's limit and load the table "
    "again by tidemill snapshot, or correct the row by hand and drop the letter"
)
_ATTEMPTS: Final = 5
"""Maximum number of attempts at a SQL transaction that meets another one."""

T = TypeVar("T")


class LetterBox:
    """Reads, applies and drops letters by a connection of its own, each call in SQL transactions of its own.

    Every change of letters locks them until the SQL transaction ends. A sink locks them, too, before it
    writes a letter or a row that has one.
    """

    def __init__(self, target: Database) -> None:
        self._target = target
        self._rows = LetterRows(target.own_tables, target.feed)
        self._is_connected = False

    def list(self, table: str | None = None, number: int | None = None) -> list[DeadLetter]:
        """Return letters by table or number, in order."""
        return [_shown(one) for one in _chosen(self._do("reading dead letters", self._load), table, number)]

    def retry(self, table: str | None = None, number: int | None = None) -> Retried:
        """Apply the letters of each row in one SQL transaction; if one is rejected, all of them stay.

        Rows whose letters are rejected are tried again while others succeed, as one may take a unique value
        that another one has yet to leave.
        """
        applied: set[int] = set()
        waiting = _chosen(self._do("reading dead letters", self._load), table, number)
        while True:
            before = len(applied)
            failed = self._pass(waiting, applied)
            waiting = [one for one in waiting if one.id not in applied]
            if not failed or len(applied) == before:
                return Retried(tuple(sorted(applied)), tuple([_shown(one) for one in failed]))

    def _pass(self, letters: Sequence[Letter], applied: set[int]) -> builtins.list[Letter]:
        """Apply the letters of each row once, adding their numbers to `applied`; return the rejected ones."""
        failed: builtins.list[Letter] = []
        done: set[int] = set()
        for one in letters:
            if one.id not in done:
                row, rejected = self._do("applying dead letters", partial(self._retry, one))
                done |= {each.id for each in row}
                if rejected is None:
                    applied |= {each.id for each in row}
                else:
                    failed.append(rejected)
        return failed

    def drop(self, table: str | None = None, number: int | None = None) -> tuple[int, ...]:
        """Delete letters by table or number; return their numbers."""

        def delete() -> tuple[int, ...]:
            if not self._rows.exists():
                return ()
            self._target.begin()
            version = self._rows.lock()
            ids = tuple([one.id for one in _chosen(self._rows.load(locked=True), table, number)])
            self._delete(ids, version)
            self._target.commit()
            return ids

        return self._do("dropping dead letters", delete)

    def close(self) -> None:
        self._is_connected = False
        self._target.close()

    def _load(self) -> builtins.list[Letter]:
        return self._rows.load() if self._rows.exists() else []

    def _retry(self, first: Letter) -> tuple[builtins.list[Letter], Letter | None]:
        """Apply all letters of a row; return them, and the one that was rejected."""
        self._target.begin()
        version = self._rows.lock()
        row = _linked(self._rows.load(locked=True), first.id)
        self._target.savepoint()
        failed = None
        for letter in row:
            if reason := self._apply(letter):
                failed = replace(letter, reason=reason)
                break
        if failed is None:
            self._delete([letter.id for letter in row], version)
        else:
            self._target.rollback_to_savepoint()
            self._rows.explain(failed)
        self._target.commit()
        return row, failed

    def _apply(self, letter: Letter) -> str:
        """Apply one letter; return the reason if it is rejected."""
        if letter.altered:
            return ALTERED
        if letter.incomplete:
            return INCOMPLETE
        try:
            self._target.rows.apply(cut_groups(runs_of([letter.change]), 1))
        except Exception as error:
            explanation = (
                error if isinstance(error, StatementRejected) else self._target.explain(error, "writing")
            )
            if isinstance(explanation or error, (StatementRejected, SinkError)):
                return str(explanation or error)
            raise
        return ""

    def _delete(self, ids: Collection[int], version: BoxVersion) -> None:
        self._rows.delete(ids)
        self._rows.set_version(version._replace(version=version.version + 1))

    def _do(self, doing: str, work: Callable[[], T]) -> T:
        """Do a piece of work, again if it meets another SQL transaction."""
        for attempt in count(1):
            try:
                if not self._is_connected:
                    self._target.connect()
                    self._is_connected = True
                return work()
            except Exception as error:
                self.close()
                explanation = (
                    error if isinstance(error, TidemillError) else self._target.explain(error, doing)
                )
                if isinstance(explanation, Retryable) and attempt < _ATTEMPTS:
                    continue
                if isinstance(explanation, TidemillError) and explanation is not error:
                    raise explanation from error
                raise
        raise AssertionError


def _chosen(letters: Sequence[Letter], table: str | None, number: int | None) -> builtins.list[Letter]:
    return [one for one in letters if table in (None, one.table.full_name) and number in (None, one.id)]


def _linked(letters: Sequence[Letter], number: int) -> builtins.list[Letter]:
    """Return the letters of the same row as that one, in order, also by changes of its key; none if it is
    gone."""
    linked = [one for one in letters if one.id == number]
    while True:
        keys = {(one.table.full_name, key) for one in linked for key in one.keys}
        more = [
            one
            for one in letters
            if one.id == number or any((one.table.full_name, key) in keys for key in one.keys)
        ]
        if len(more) == len(linked):
            return linked
        linked = more


def _shown(letter: Letter) -> DeadLetter:
    return DeadLetter(
        id=letter.id,
        table=letter.table.full_name,
        key=describe_row(letter.change),
        op=letter.op,
        columns=tuple([column.name for column in letter.table.columns]),
        before=letter.before,
        after=letter.after,
        ts=letter.ts,
        position=letter.position,
        reason=letter.reason,
        statement=letter.statement,
        time=letter.time,
    )
