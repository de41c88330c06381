"""Rows of every type as Arrow columns: the same values as the tuples, or none at all."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tidemill.codec.image import Image
from tidemill.codec.images import read_images
from tidemill.codec.mysql.layout import Layouts
from tidemill.codec.mysql.run import EventBlock
from tidemill.errors import SourceError
from tidemill.events import Run, runs_of
from tidemill.testing.binlog_events import INSERT, INT, TINY, UPDATE, VARCHAR, rows_event, table_map, varchar

from .runs import runs_of_rows
from .test_rows import layout_of
from .vectors import Vector, load

pytestmark = pytest.mark.usefixtures("decoder")

VECTORS = load()


def rows_in(image: Image, count: int) -> list[tuple[Any, ...] | None]:
    if image.columns is None:
        return [None] * count
    absent = [False] * count if image.absent is None else image.absent.to_pylist()
    rows = zip(*[column.to_pylist() for column in image.columns], strict=True)
    return [None if gone else row for row, gone in zip(rows, absent, strict=True)]


def printed(rows: list[tuple[Any, ...] | None]) -> str:
    """With the sign of a zero, and a NaN that is equal to itself."""
    return repr(rows).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc")


def check(runs: list[Run]) -> bool:
    """True if the runs are read as columns, whose values are checked against the rows."""
    images = read_images(runs)
    changes = [change for run in runs for change in run.changes()]
    assert sum(len(run) for run in runs) == len(changes)
    if images is None:
        return False
    before, after = (rows_in(image, len(changes)) for image in images)
    assert printed(before) == printed([change.before for change in changes])
    assert printed(after) == printed([change.after for change in changes])
    return True


@pytest.mark.parametrize("op", [23, 24, 25])
def test_columns_have_the_values_of_the_rows(op: int) -> None:
    columnar = set()
    for vector in VECTORS:
        runs = runs_of_rows(vector, op)
        regular = [run for run in runs if check([run])]
        if regular:
            assert check(regular)
            columnar.add(regular[0].table.columns[1].kind)
    assert columnar == {
        "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "bit", "char",
        "varchar", "text", "binary", "varbinary", "blob", "date", "time", "datetime", "timestamp", "year",
        "enum", "set",
    }  # fmt: skip


def test_rows_of_a_snapshot_are_columns_by_the_native_decoder_only(decoder: str) -> None:
    columnar = 0
    for vector in VECTORS:
        layouts = Layouts()
        table = layouts.layout(layouts.number_of(vector.table_map)).table
        run = layouts.layout(layouts.add_table(table)).result_run(vector.packets, 7, 7)
        assert len(run) == len(vector.literals)
        assert run.decoded is None
        columnar += check([run])
    assert columnar > 40 if decoder == "native" else columnar == 0


def test_runs_of_different_operations_keep_their_order() -> None:
    payload = table_map(INT._replace(nullable=False), VARCHAR, TINY)
    layout = layout_of(payload)
    seed = random.Random(11)
    for _ in range(200):
        runs = []
        for _ in range(seed.randint(1, 6)):
            op = seed.choice((INSERT, UPDATE, INSERT + 2))
            images = [
                [
                    seed.randbytes(4),
                    seed.choice((None, varchar("é" * seed.randint(0, 9)))),
                    seed.choice((None, seed.randbytes(1))),
                ]
                for _ in range(2 * seed.randint(1, 4))
            ]
            runs.append(layout.block().add(rows_event(op, images), 5, 4))
        assert check(runs)
        assert not any(run.decoded is None for run in runs)


def test_what_is_damaged_is_named_as_the_rows_would_name_it() -> None:
    vector = next(
        vector for vector in VECTORS if vector.definition.startswith("VARCHAR(20) CHARACTER SET utf8")
    )
    (run, *_) = runs_of_rows(vector)
    event = run.event  # type: ignore[attr-defined]
    for size in range(20, len(event)):
        block = EventBlock(run.decoder, run.table)  # type: ignore[attr-defined]
        with pytest.raises(SourceError, match=run.table.full_name):
            read_images([block.add(event[:size], 1, 1)])


def test_rows_that_are_decoded_already_are_left_as_rows() -> None:
    vector: Vector = VECTORS[0]
    assert read_images(runs_of([change for run in runs_of_rows(vector) for change in run.changes()])) is None
