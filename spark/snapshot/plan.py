"""Division of a table's snapshot into parts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from typing import Final

from pyspark.sql.datasource import Filter

from ...dialects.mysql.client import Session, is_mariadb
from ...errors import ConfigError
from ...events import KeyRange, OrderedKey
from ...puller.mysql.options import MysqlOptions
from ...snapshot.mysql.bounds import bounds
from ...snapshot.mysql.definitions import read_table
from ...snapshot.mysql.tables import FoundTable, SourceTable
from ...sources.source import no_table_matches
from ..offsets.mysql import MysqlOffsets
from ..read.options import ReadOptions
from .partition import MysqlPartition
from .row_filter import IntegerRange, key_range, row_filters

_LEAST_ROWS: Final = 1000
"""Rows below which a table isn't divided."""


def plan(options: ReadOptions, filters: Sequence[Filter]) -> list[MysqlPartition] | None:
    """Divide the snapshot of the option `table`; None if its storage engine has no consistent views.

    If its keys have an order, up to `partitions` tasks read the rows as of one position. Otherwise, and if
    one task is enough for a MySQL, it reads the rows of its own time. Raises Retryable and Fatal.
    """
    name = FoundTable(*options.table.split(".", 1))
    with closing(MysqlOffsets(options)) as offsets:
        at = offsets.latest()
        with offsets.connected() as session:
            one = read_table(session, name, has_catalog=False)
            if one is None:
                raise ConfigError(no_table_matches([options.table]))
            if not one.is_transactional:
                return None
            conditions = row_filters(one.table, filters)
            is_exact = one.has_chunks
            wanted = key_range(one.table, conditions) if is_exact else IntegerRange()
            keys: list[OrderedKey] = []
            if is_exact and options.partitions > 1 and not wanted.is_empty:
                keys = _bounds(session, options, one, wanted.keys)
            if not is_mariadb(session):
                is_exact = bool(keys)  # one task needs no lock
                at = offsets.settled() if is_exact else at
    if wanted.is_empty:
        return []
    edges = pairwise([wanted.keys.after, *keys, wanted.keys.up_to])
    return [
        MysqlPartition(number, one, at, KeyRange(*edge), conditions, is_exact=is_exact)
        for number, edge in enumerate(edges)
    ]


def _bounds(session: Session, options: ReadOptions, one: SourceTable, within: KeyRange) -> list[OrderedKey]:
    server, partitions = options.source_as(MysqlOptions), options.partitions
    rows = max(_LEAST_ROWS, one.rows_estimated // (4 * partitions))
    keys = bounds(session, server, one.table, rows, within)
    parts = min(partitions, len(keys) + 1)
    return [keys[number * len(keys) // parts] for number in range(1, parts)]
