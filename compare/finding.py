"""Findings of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ..dialects.read import Settled
from ..events import Row, Table

Named: TypeAlias = dict[str, Any]
"""Values by column name, as the target stores them."""


class Difference(Struct, frozen=True):
    """A row that isn't the same in source and target."""

    table: str
    """Full name in the source."""
    kind: Literal["missing", "extra", "changed"]
    """Missing in the target, only in the target, or with other values."""
    key: Named
    """Values of the key; of a table without a key the whole row."""
    source: Named | None = None
    """The row in the source; None if there is none. Of a changed row only the columns that differ."""
    target: Named | None = None
    """The same of the target."""
    count: int = 1
    """Number of equal rows that are missing or extra in a table without a key."""
    settled: bool = True
    """False if the target hasn't applied everything that the source had logged when it was read: the
    difference may be a change that is yet to come."""


class TableResult(Struct, frozen=True):
    """The end of one table's comparison."""

    table: str
    state: Literal["compared", "differs", "loading", "missing", "extra", "not comparable", "stopped"]
    """`differs`: its columns do; `missing`: the target has no such table; `extra`: the source has none;
    `stopped`: the comparison was ended, and this is what was found until then."""
    rows: int = 0
    """Number of rows compared, as counted in the source."""
    missing: int = 0
    extra: int = 0
    changed: int = 0
    unsettled: int = 0
    """Number of the differences above that aren't settled."""
    moving: int = 0
    """Number of rows that changed at every look, and so couldn't be compared."""
    detail: str = ""
    """Explanation of the state."""

    @property
    def differences(self) -> int:
        return self.missing + self.extra + self.changed

    @property
    def is_equal(self) -> bool:
        """True unless rows differ, or the table itself does."""
        return self.differences == 0 and self.state in ("compared", "loading")


Finding: TypeAlias = Difference | TableResult


def difference_of(table: Table, settled: Settled) -> Difference:
    """Return a finding for users."""
    names = [column.name for column in table.columns]
    if not table.key:
        more = settled.source - settled.target
        row = dict(zip(names, settled.key, strict=True))
        return Difference(
            table.full_name,
            "missing" if more > 0 else "extra",
            row,
            row if more > 0 else None,
            None if more > 0 else row,
            abs(more),
            settled.is_certain,
        )
    key = {names[i]: value for i, value in zip(table.key, settled.key, strict=True)}
    ours, theirs = _named(names, settled.source), _named(names, settled.target)
    if ours is None or theirs is None:
        kind: Literal["missing", "extra"] = "extra" if ours is None else "missing"
        return Difference(table.full_name, kind, key, ours, theirs, settled=settled.is_certain)
    differing = [name for name in names if ours[name] != theirs[name]]
    return Difference(
        table.full_name,
        "changed",
        key,
        {name: ours[name] for name in differing},
        {name: theirs[name] for name in differing},
        settled=settled.is_certain,
    )


def _named(names: Sequence[str], row: Row | None) -> Named | None:
    return None if row is None else dict(zip(names, row, strict=True))
