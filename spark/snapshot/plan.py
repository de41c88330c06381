"""Division of a table's snapshot into parts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Final, cast

from pyspark.sql.datasource import Filter

from ...puller.mysql.connection import Session, connect, disconnect, query, translated
from ...puller.mysql.key_range import has_integer_key
from ...puller.mysql.options import MysqlOptions
from ...puller.mysql.requirements import survey
from ...puller.mysql.tables import SourceTable
from ..offsets.mysql import MysqlOffsets
from ..read.options import ReadOptions
from ..read.parts import WHOLE
from .cuts import cuts
from .partition import MysqlPartition
from .row_filter import KeyRange, key_range, row_filters

_TRANSACTIONAL: Final = frozenset({"InnoDB", "ROCKSDB"})
_LEAST_ROWS: Final = 1000
"""Rows below which a table isn't divided."""


def plan(options: ReadOptions, filters: Sequence[Filter]) -> list[MysqlPartition] | None:
    """Divide the snapshot of the option `table`; None if its storage engine has no consistent views.

    With an integer key, and a server that tells a view's position, up to `partitions` tasks read the rows as
    of one position. Otherwise one task reads those of its own time. Raises Retryable and Fatal.
    """
    source = cast("MysqlOptions", options.feed(Path(), WHOLE).source)
    with closing(MysqlOffsets(options)) as offsets:
        offsets.tables()
        at = offsets.latest()
    found = survey(source, lambda *name: ".".join(name) == options.table, has_catalog=False)
    found.raise_errors()
    (one,) = found.tables
    if one.engine not in _TRANSACTIONAL:
        return None
    conditions = row_filters(one.table, filters)
    session = connect(source)
    try:
        with translated(source):
            is_exact = _divides(session, one)
            within = key_range(one.table, conditions) if is_exact else KeyRange()
            bounds = _bounds(session, one, within, options.partitions) if is_exact else []
    finally:
        disconnect(session)
    if within.is_empty:
        return []
    edges = pairwise([within.after, *bounds, within.up_to])
    return [
        MysqlPartition(number, one.table, at, KeyRange(*edge), conditions, is_exact=is_exact)
        for number, edge in enumerate(edges)
    ]


def _divides(session: Session, one: SourceTable) -> bool:
    is_keyed = one.known.has_primary and has_integer_key(one.table)
    return is_keyed and bool(query(session, "SHOW STATUS LIKE 'binlog_snapshot_file'"))


def _bounds(session: Session, one: SourceTable, within: KeyRange, partitions: int) -> list[int]:
    if partitions == 1 or within.is_empty:
        return []
    found = cuts(session, one.table, max(_LEAST_ROWS, one.rows_estimated // (4 * partitions)), *within)
    parts = min(partitions, len(found) + 1)
    return [found[number * len(found) // parts] for number in range(1, parts)]
