"""A sink's own choice among the tables of its feed, as a stage."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from ...events import (
    Action,
    Checkpoint,
    Ddl,
    DropTable,
    Item,
    RenameTables,
    Rows,
    TableName,
    Wait,
    source_and_table,
)
from .. import Element, Mark, StageContext, emptied
from .tables import TablePatterns


class TableStage:
    """Drops what doesn't concern the tables of one sink: rows, schema changes, and parts of a snapshot.

    Only the table of a run decides, so no row is decoded.
    """

    name = "table filter"

    def __init__(self, tables: TablePatterns, source_names: Collection[str] = ()) -> None:
        """`source_names` are those of several sources whose tables may have equal names."""
        self._tables = tables
        self._source_names = source_names

    def open(self, context: StageContext) -> None:
        """Nothing is kept."""

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        passed: list[Element] = []
        for item in batch:
            if isinstance(item, Ddl) and item.actions and isinstance(item.actions[0], RenameTables):
                passed += self._renames(item, item.actions[0])
            elif (kept := self._kept(item)) is not None:
                passed.append(kept)
        return passed

    def _kept(self, item: Element) -> Element | None:
        if isinstance(item, Mark):
            return item
        if isinstance(item, Ddl):
            is_of_any = bool(item.refusal) and not item.table  # the statement's tables aren't known
            return item if is_of_any or self._tables.matches(item.schema, item.table) else emptied(item)
        if item.chunk is not None and item.chunk.table:
            _, table = source_and_table(item.chunk.table, self._source_names)
            if not self._tables.matches_full(table):
                return None
        runs = item.runs
        left = [run for run in runs if self._tables.matches(run.table.schema, run.table.name)]
        return item if len(left) == len(runs) else replace(item, rows=Rows(left))

    def _renames(self, ddl: Ddl, action: RenameTables) -> list[Item]:
        """Return what a RENAME does to the tables of the sink.

        A table that leaves them is dropped first, as another may take its name; one that comes to them has
        to be loaded.
        """
        wanted = [
            (self._tables.matches(*old), self._tables.matches(*new), old, new) for old, new in action.pairs
        ]
        gone = [old for was, stays, old, _ in wanted if was and not stays]
        kept = tuple((old, new) for was, stays, old, new in wanted if was and stays)
        come = [new for was, stays, _, new in wanted if stays and not was]
        parts = [_part(ddl, old, (DropTable(),)) for old in gone]
        if kept:
            parts.append(_part(ddl, kept[0][0], (RenameTables(kept),)))
        for new in come:
            sentence = f"{'.'.join(new)} was renamed into the tables of this sink: {ddl.query}"
            parts.append(_part(ddl, new, (), sentence))
        if not parts:
            return [emptied(ddl)]
        return [*parts[:-1], replace(parts[-1], position=ddl.position, last=ddl.last)]

    def durable(self, checkpoint: Checkpoint) -> Sequence[Element]:  # noqa: ARG002
        return ()

    def waits(self) -> Sequence[Wait]:
        return ()

    def close(self) -> None:
        """Nothing is held."""


def _part(ddl: Ddl, name: TableName, actions: tuple[Action, ...], reload: str = "") -> Ddl:
    """Return a part of a schema change for one table, not the last one."""
    schema, table = name
    return replace(ddl, schema=schema, table=table, actions=actions, reload=reload, position="", last=False)
