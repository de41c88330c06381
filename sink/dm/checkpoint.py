"""A feed's checkpoint as rows of DM's checkpoint, and the other way round."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from ...errors import CheckpointError
from ...events import Checkpoint, TablePosition, Ts, source_and_table
from .point import by_source, joined, point_of
from .table import DmRow

FIRST_TS: Final = 0
"""Commit ts of a checkpoint that DM left: below that of every transaction."""
_LANES: Final = 1 << 10
"""Distance of commit timestamps that leaves one to each of several sources."""


def rows_of(checkpoint: Checkpoint, source_id: str, touched: Iterable[str]) -> list[DmRow]:
    """Return the rows for a checkpoint of a feed that isn't loading; `source_id` is that of its only source.

    DM reads from the global position again and skips what a table's own row covers. So the global one is the
    lowest of all tables, and while a table lags, the `touched` ones, by origin name, have rows of their own.
    Empty while a position is none of DM's.
    """
    own = by_source(checkpoint.position, source_id)
    lags = {name: place for name, place in checkpoint.tables.items() if place.ts < checkpoint.ts}
    lowest, lagging = dict(own), set()
    for name, place in sorted(lags.items(), key=lambda one: one[1].ts, reverse=True):
        id_, _ = _source_of(name, own)
        lowest[id_] = by_source(place.position, source_id)[id_]
        lagging.add(id_)
    placed = {}
    for name in {*touched, *checkpoint.tables} if lagging else ():
        id_, table = _source_of(name, own)
        if id_ in lagging:
            is_own = name in checkpoint.tables
            position = by_source(checkpoint.tables[name].position, source_id)[id_] if is_own else own[id_]
            placed[id_, table] = position
    points = [_row(id_, "", position) for id_, position in lowest.items()]
    points += [_row(id_, table, position) for (id_, table), position in sorted(placed.items())]
    return [row for row in points if row is not None] if None not in points else []


def _source_of(name: str, ids: Iterable[str]) -> tuple[str, str]:
    """Return the id of a table's source, and the table's full name; a feed's only source has the only id."""
    ids = list(ids)
    source, table = source_and_table(name, ids)
    if not source and len(ids) > 1:
        raise CheckpointError(f'checkpoint = "dm": the source of table {table} is not known')
    return source or ids[0], table


def _row(id_: str, table: str, position: str) -> DmRow | None:
    point = point_of(position)
    schema, _, name = table.partition(".")
    return None if point is None else DmRow(id_, schema, name, point, None, not table)


def checkpoint_of(rows: Sequence[DmRow], source_id: str, where: str, after: Ts) -> Checkpoint | None:
    """Return the checkpoint that DM left; None if it left none.

    A table that is ahead gets a ts above `after`, which is above that of every transaction that DM read: the
    source raises its clock where it passes the position. Raises CheckpointError, naming the table `where`.
    """
    starts = {row.id: row.point.text for row in rows if row.is_global}
    if not starts:
        return None
    ahead: dict[str, list[DmRow]] = defaultdict(list)
    begins = {row.id: row.point.order for row in rows if row.is_global}
    for row in rows:
        if row.is_global or not row.table:
            continue
        if row.id not in starts:
            raise CheckpointError(f"{where}: source {row.id} has rows of tables and no global one")
        if row.point.order > begins[row.id]:
            ahead[row.id].append(row)
    tables = {}
    for id_, points in ahead.items():
        orders = sorted({row.point.order for row in points})
        for row in points:
            full_name = f"{row.schema}.{row.table}"
            name = full_name if source_id or len(starts) == 1 else f"{id_}: {full_name}"
            ts = after + (orders.index(row.point.order) + 1) * _LANES
            tables[name] = TablePosition(ts, joined({**starts, id_: row.point.text}, source_id))
    return Checkpoint(FIRST_TS, joined(starts, source_id), tables=tables)
