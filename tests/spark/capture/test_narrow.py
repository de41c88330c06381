"""Filtering batches gives the same changes as filtering the items in a task."""

from __future__ import annotations

from random import Random

import pytest

from tidemill.events import Ddl, Item, RowChange, Transaction
from tidemill.spark.capture.narrow import Narrow
from tidemill.spark.envelope import EnvelopeEncoder
from tidemill.spark.option_values import OPERATIONS
from tidemill.spark.read.parts import WHOLE, Part
from tidemill.spark.read.pick import Pick

from .history import history, rows_of


def narrowed(items: list[Item], narrow: Narrow, seed: int) -> list[dict]:
    """Of batches as the sink makes them, cut anywhere."""
    random, encoder, batches = Random(seed), EnvelopeEncoder(json=False), []
    rest = list(items)
    while rest:
        size = random.choice([1, 2, 3, 30])
        batches.append(encoder.encode(rest[:size]))
        del rest[:size]
    return rows_of(narrow(batch) for batch in batches)


def only(items: list[Item], has) -> list[Item]:
    """As a feed brings them that follows only these tables."""
    found: list[Item] = []
    for item in items:
        if isinstance(item, Transaction):
            rows: list[RowChange] = [row for row in item.rows if has(row.table.schema, row.table.name)]
            found.append(
                Transaction(item.commit_ts, item.start_ts, item.source, rows, item.position, item.last)
            )
        elif isinstance(item, Ddl) and has(item.schema, item.table):
            found.append(item)
    return found


@pytest.mark.parametrize("operations", [OPERATIONS, ("insert", "delete"), ("update", "ddl")])
@pytest.mark.parametrize("part", [WHOLE, Part(0, 2), Part(1, 2), Part(tables=frozenset({"pairs"}))])
@pytest.mark.parametrize("seed", range(4))
def test_of_a_binlog_the_rows_keep_their_numbers(seed, part, operations):
    items = history(seed)
    found = narrowed(items, Narrow(None, part.has, operations), seed)
    assert found == EnvelopeEncoder(Pick(part, operations), json=False).encode(items).to_pylist()


@pytest.mark.parametrize("operations", [OPERATIONS, ("insert", "delete")])
@pytest.mark.parametrize("part", [Part(0, 2), Part(1, 2), Part(2, 3)])
@pytest.mark.parametrize("seed", range(4))
def test_of_tables_followed_alone_the_rows_have_numbers_of_their_own(seed, part, operations):
    items = history(seed)
    found = narrowed(items, Narrow(part.has, part.has, operations), seed)
    alone = EnvelopeEncoder(Pick(part, operations), json=False).encode(only(items, part.has)).to_pylist()
    assert found == alone
