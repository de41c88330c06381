"""Row changes: single ones, and runs that are decoded at the first access."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Literal, TypeAlias, final, overload

from msgspec import Struct

from .table import Table
from .ts import Ts

Row: TypeAlias = tuple[Any, ...]
"""The values of one row, in the order of its table's columns."""


Op: TypeAlias = Literal["insert", "update", "delete"]


class RowChange(Struct, frozen=True, gc=False):
    """One row's change: insert has `after`, delete has `before`, update has both."""

    commit_ts: Ts
    start_ts: Ts
    table: Table
    op: Op
    before: Row | None
    after: Row | None

    def before_dict(self) -> dict[str, Any] | None:
        return _named(self.table, self.before)

    def after_dict(self) -> dict[str, Any] | None:
        return _named(self.table, self.after)


def _named(table: Table, row: Row | None) -> dict[str, Any] | None:
    return None if row is None else {c.name: v for c, v in zip(table.columns, row, strict=True)}


class Run(Struct, eq=False, gc=False):
    """Consecutive changes of one table version by one operation, in commit order.

    A source may keep the changes as its own bytes and decode them at the first access. Then `changes` and
    `len` raise SourceError if they can't be decoded. Any thread may call.
    """

    commit_ts: Ts
    start_ts: Ts
    table: Table
    op: Op
    decoded: list[RowChange] | None
    """None until they are decoded."""

    @property
    def origin_name(self) -> str:
        """Name of the table in checkpoints: that of the source's table, also if the run is routed."""
        return self.table.origin_name

    def changes(self) -> list[RowChange]:
        """Return the changes, decoded once."""
        assert self.decoded is not None
        return self.decoded

    def __len__(self) -> int:
        return len(self.changes())


def runs_of(changes: Iterable[RowChange]) -> list[Run]:
    """Group changes that are decoded already, in their order."""
    runs: list[Run] = []
    run: Run | None = None
    for change in changes:
        if run is not None and change.table is run.table and change.op == run.op:
            run.decoded.append(change)  # type: ignore[union-attr]
        else:
            run = Run(change.commit_ts, change.start_ts, change.table, change.op, [change])
            runs.append(run)
    return runs


class _RowsMeta(type(Struct), ABCMeta):  # type: ignore[misc]
    """The type of a Struct that is a Sequence."""


@final
class Rows(Struct, Sequence[RowChange], eq=False, gc=False, metaclass=_RowsMeta):
    """The changes of several runs, one after the other.

    The first access decodes all of them, so that none is seen if a later one can't be decoded; it raises
    SourceError then. `len` may raise it, too.
    """

    runs: Sequence[Run]
    _count: int = -1
    """Number of the changes; -1 if it isn't known."""
    _flat: list[RowChange] | None = None

    def __len__(self) -> int:
        if self._count < 0:
            runs = self.runs
            self._count = len(runs[0]) if len(runs) == 1 else sum([len(run) for run in runs])
        return self._count

    def __iter__(self) -> Iterator[RowChange]:
        if len(self.runs) == 1:  # as in nearly all small transactions: half of the time
            return iter(self.runs[0].changes())
        return chain.from_iterable([run.changes() for run in self.runs])

    @overload
    def __getitem__(self, index: int) -> RowChange: ...
    @overload
    def __getitem__(self, index: slice) -> list[RowChange]: ...
    def __getitem__(self, index: int | slice) -> RowChange | list[RowChange]:
        if self._flat is None:
            self._flat = list(self)
        return self._flat[index]

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, (Rows, list)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))
