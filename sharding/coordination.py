"""The ways in which shards' schema changes become changes of their merged table, and what no way allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..chain import Element
from ..codec.mysql.column_defaults import needs_clock
from ..errors import SinkError
from ..events import Action, AddColumn, Ddl, Item, Table, TablePosition, Ts
from .merged_table import MergedTable
from .options import Mode
from .route import Route
from .shard import Shard


class Replacement(NamedTuple):
    """The replacement of a shard's schema change."""

    marks: list[Element]
    """Marks that come before the item."""
    item: Item
    """The change of the merged table, or a transaction without rows."""


class Coordination(Protocol):
    """One way to coordinate the changes of a merged table's shards."""

    def alter(self, merged: MergedTable, route: Route, ddl: Ddl, before: TablePosition | None) -> Replacement:
        """Note a shard's change of columns or key; `before` is the position before it, None if it is late.

        A change is late if it is older than the checkpoint, in which the shard lags. Raises SinkError if it
        can't be coordinated.
        """

    def check(self) -> None:
        """Raise SinkError if a shard has waited too long. Called about twice a second."""

    def join(self, merged: MergedTable, shard: Shard, table: Table) -> tuple[Action, ...]:
        """Add a shard by its routed definition; return what that changes in the merged table.

        Raises SinkError if the shard can't be merged.
        """

    def leave(self, merged: MergedTable, shard: Shard, ts: Ts) -> None:
        """Remove a shard at a commit ts; its rows stay. Raises SinkError if they can't."""


def reject_rename(ddl: Ddl, routes: Sequence[Route | None]) -> None:
    """Raise SinkError if a table of a RENAME, before or after it, has a route."""
    route = next(filter(None, routes), None)
    if route is not None:
        raise SinkError(
            f"{route.shard}: a shard can't be renamed, nor a table to a shard's name: {ddl.query}: undo it, "
            "or load everything into an empty target"
        )


def reject_uncoordinated(
    merged: MergedTable, route: Route, ddl: Ddl, mode: Mode, *, is_loading: bool
) -> None:
    """Raise SinkError for a change that can't be coordinated in any way, or not at all in this mode."""
    shard = route.shard
    if is_loading:
        raise SinkError(
            f"{shard} was changed while shards of {merged.full_name} were loaded: {ddl.query}: load "
            "everything into an empty target, without schema changes meanwhile"
        )
    is_alone = len(merged.shards) == 1
    if mode == "off" and not is_alone:
        raise SinkError(
            f'{shard}: {ddl.query}: sharding.mode = "off" coordinates no schema changes of shards: set '
            'mode = "pessimistic"'
        )
    for action in ddl.actions:
        if isinstance(action, AddColumn):
            route.check_column(action.column.name)
            if needs_clock(action.column) and not is_alone:
                raise SinkError(
                    f"{shard}: {ddl.query}: the default of column {action.column.name} depends on the "
                    "clock, so each shard's rows have another value, and one statement for "
                    f"{merged.full_name} can't repeat that: add it without the default, and update"
                )
