"""Division of a table's snapshot into parts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from typing import Final

from pyspark.sql.datasource import Filter

from ...dialects.mysql.client import Session, is_mariadb
from ...dialects.mysql.key_range import has_integer_key
from ...errors import ConfigError
from ...puller.mysql.tables import FoundTable, SourceTable, read_table
from ...sources.source import no_table_matches
from ..offsets.mysql import MysqlOffsets
from ..read.options import ReadOptions
from .cuts import cuts
from .partition import MysqlPartition
from .row_filter import KeyRange, key_range, row_filters

_TRANSACTIONAL: Final = frozenset({"InnoDB", "ROCKSDB"})
_LEAST_ROWS: Final = 1000
"""Rows below which a table isn't divided."""


def plan(options: ReadOptions, filters: Sequence[Filter]) -> list[MysqlPartition] | None:
    """Divide the snapshot of the option `table`; None if its storage engine has no consistent views.

    With an integer key, up to `partitions` tasks read the rows as of one position. Otherwise, and if one task
    is enough for a MySQL, it reads the rows of its own time. Raises Retryable and Fatal.
    """
    name = FoundTable(*options.table.split(".", 1))
    with closing(MysqlOffsets(options)) as offsets:
        at = offsets.latest()
        with offsets.connected() as session:
            one = read_table(session, name, has_catalog=False)
            if one is None:
                raise ConfigError(no_table_matches([options.table]))
            if one.engine not in _TRANSACTIONAL:
                return None
            conditions = row_filters(one.table, filters)
            is_exact = one.known.has_primary and has_integer_key(one.table)
            within = key_range(one.table, conditions) if is_exact else KeyRange()
            bounds = _bounds(session, one, within, options.partitions) if is_exact else []
            if not is_mariadb(session):
                is_exact = bool(bounds)  # one task needs no lock
                at = offsets.settled() if is_exact else at
    if within.is_empty:
        return []
    edges = pairwise([within.after, *bounds, within.up_to])
    return [
        MysqlPartition(number, one, at, KeyRange(*edge), conditions, is_exact=is_exact)
        for number, edge in enumerate(edges)
    ]


def _bounds(session: Session, one: SourceTable, within: KeyRange, partitions: int) -> list[int]:
    if partitions == 1 or within.is_empty:
        return []
    found = cuts(session, one.table, max(_LEAST_ROWS, one.rows_estimated // (4 * partitions)), *within)
    parts = min(partitions, len(found) + 1)
    return [found[number * len(found) // parts] for number in range(1, parts)]
