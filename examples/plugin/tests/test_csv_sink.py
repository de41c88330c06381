"""The suite of sinks on this one: it is killed between calls, and the file is compared with the rows."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from tidemill_csv.line import Change, decode
from tidemill_csv.sink import CsvSink

from tidemill.engine.checkpoint import CheckpointFile
from tidemill.events import Column, Row, Table
from tidemill.testing import SinkConformance
from tidemill.testing.changes import insert, transaction
from tidemill.testing.sink_conformance import STATES_WITHOUT_ALTERATIONS, WITHOUT_ALTERATIONS

PRICES = Table("shop", "prices", (Column("price", "decimal", length=10, scale=2),))


class CsvPlace:
    """A file of lines, and the checkpoint beside it."""

    at_least_once = False

    def __init__(self, directory: Path) -> None:
        self.path = directory / "rows.csv"
        self.store = CheckpointFile(directory / "checkpoint")

    def sink(self) -> CsvSink:
        return CsvSink("csv", self.path, self.store)

    def rows(self, table: Table) -> list[Row]:
        rows: Counter[Row] = Counter()
        for line in self.path.read_bytes().splitlines():
            one = decode(line)
            if one.what in ("insert", "update", "delete"):
                change = msgspec.json.decode(one.content, type=Change)
                if change.table == table.full_name:
                    rows[tuple(change.before or ())] -= change.before is not None
                    rows[tuple(change.after or ())] += change.after is not None
        return [*rows.elements()]


class TestCsv(SinkConformance):
    history = WITHOUT_ALTERATIONS
    states = STATES_WITHOUT_ALTERATIONS
    unfit = (transaction(30, insert(PRICES, Decimal("1.50"))),)

    @pytest.fixture
    def place(self, tmp_path: Path) -> CsvPlace:
        return CsvPlace(tmp_path)
