"""The memory of columns that the native decoder makes."""

from __future__ import annotations

import resource
import struct
from datetime import datetime
from decimal import Decimal

import pytest

from tidemill.codec.images import read_images
from tidemill.codec.mysql.layout import Layouts
from tidemill.codec.native import library
from tidemill.emulator.mysql.packed import datetime_bytes, decimal_bytes
from tidemill.testing.binlog_events import (
    BLOB,
    INSERT,
    INT,
    TINY,
    UTF8MB4_BIN,
    VARCHAR,
    ColumnSpec,
    decimal,
    rows_event,
    table_map,
    varchar,
)

pytestmark = pytest.mark.skipif(not library.in_use, reason="the native decoder isn't in use")
ROWS = 10_000
COLUMNS = (
    INT._replace(nullable=False), ColumnSpec(8), decimal(12, 2), ColumnSpec(5, b"\x08"), VARCHAR,
    ColumnSpec(18, b"\0"), TINY, BLOB._replace(collation=UTF8MB4_BIN),
)  # fmt: skip


def image(key: int) -> list[bytes | None]:
    return [
        key.to_bytes(4, "little"),
        (2**62 + key).to_bytes(8, "little"),
        decimal_bytes(Decimal(f"{key % 10_000}.25"), 12, 2),
        struct.pack("<d", key / 7),
        varchar(f"name of {key}"),
        datetime_bytes(datetime(2026, 3, key % 9 + 1, 4, 5, 6), 0),  # noqa: DTZ001
        bytes((key % 100,)),
        (40).to_bytes(2, "little") + b"n" * 40,
    ]


def event(first: int) -> bytes:
    return rows_event(INSERT, [image(number) for number in range(first, first + ROWS)])


def columns(events: list[bytes]):
    layouts = Layouts()
    layout = layouts.layout(layouts.number_of(table_map(*COLUMNS)))
    block = layout.block()
    found = read_images([block.add(one, 1, 1) for one in events])
    assert found is not None
    return found[1].columns


def test_batch_after_batch_uses_the_same_memory():
    given = [event(0)]
    for _ in range(3):
        columns(given)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        columns(given)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    size = sum(array.nbytes for array in columns(given))
    assert faults < 50 * size / resource.getpagesize() / 4


def test_columns_in_use_keep_their_values():
    kept = [columns([event(first)]) for first in (0, ROWS)]
    for _ in range(5):
        columns([event(7 * ROWS)])
    fresh = columns([event(0), event(ROWS)])
    for first, second, whole in zip(*kept, fresh, strict=True):
        assert whole.slice(0, ROWS).equals(first)
        assert whole.slice(ROWS).equals(second)
    assert kept[1][0].to_pylist() == [*range(ROWS, 2 * ROWS)]
