"""The native reader of row images beside the one in Python."""

from __future__ import annotations

import gc
import sys
import tracemalloc

import pyarrow as pa
import pytest

from tidemill.codec.mysql.native_rows import ImageLayout, image_reader
from tidemill.codec.mysql.row_code import Images, RowsReader, compile_rows
from tidemill.codec.mysql.values import UNREADABLE
from tidemill.codec.native import library
from tidemill.events import RowChange

from .images import Case, cases

pytestmark = pytest.mark.skipif(library.native is None, reason="the native decoder isn't built")


def readers(case: Case) -> tuple[RowsReader, RowsReader]:
    given = case.table, case.fields, case.op, case.images
    return compile_rows(*given), image_reader(*given)


def outcome(read: RowsReader, data: bytes) -> str:
    """Return the changes as text, with the sign of a zero; the rows come after a byte of another kind."""
    try:
        return repr(read(b"\xff" + data, 1, 1 + len(data), 9, 8))
    except UNREADABLE:
        return "unreadable"


def compare(seed: int) -> int:
    """Compare the readers, and return the number of cases that can be read."""
    readable = 0
    for case in cases(seed):
        python, native = (outcome(read, case.data) for read in readers(case))
        assert native == python, seed
        readable += python != "unreadable"
    return readable


def test_random_rows_are_the_same_by_both_readers() -> None:
    assert sum(map(compare, range(80))) > 40


@pytest.mark.soak
def test_random_rows_are_the_same_by_both_readers_for_many_seeds() -> None:
    assert sum(map(compare, range(1_000, 7_000))) > 3_000


def compare_columns(seed: int) -> int:
    """Compare the arrays with the rows; return the number of cases that are read as arrays."""
    found = 0
    for case in cases(seed):
        every = tuple(range(len(case.fields)))
        if not case.data or case.images != Images(every, every):
            continue
        rows = outcome(compile_rows(case.table, case.fields, "insert"), case.data)
        layout = ImageLayout(case.fields)
        try:
            starts = layout.starts(b"\xff" + case.data, 1, 1 + len(case.data))
            half = len(starts) // 2
            arrays = layout.columns([b"\xff" + case.data] * 2, [starts[:half], starts[half:]])
        except (pa.ArrowException, *UNREADABLE):
            continue
        values = [*zip(*[array.to_pylist() for array in arrays], strict=True)] or [()] * len(starts)
        changes = [RowChange(9, 8, case.table, "insert", None, row) for row in values]
        assert repr(changes).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc") == rows, seed
        found += 1
    return found


def test_random_rows_have_the_same_values_as_columns() -> None:
    assert sum(map(compare_columns, range(200))) > 10


@pytest.mark.soak
def test_random_rows_have_the_same_values_as_columns_for_many_seeds() -> None:
    assert sum(map(compare_columns, range(1_000, 7_000))) > 400


def test_nothing_is_kept_of_what_was_read() -> None:
    found = [case for seed in range(30) for case in cases(seed)]
    native = [readers(case)[1] for case in found]
    for _ in range(2):  # printers of sets, decimals and codecs keep what they saw first
        for case, read in zip(found, native, strict=True):
            outcome(read, case.data)
    gc.collect()
    counts = [sys.getrefcount(case.table) for case in found]
    tracemalloc.start()
    try:
        for case, read in zip(found, native, strict=True):
            outcome(read, case.data)
        begun, _ = tracemalloc.get_traced_memory()
        for _ in range(20):
            for case, read in zip(found, native, strict=True):
                outcome(read, case.data)
        gc.collect()
        ended, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    gc.collect()
    assert [sys.getrefcount(case.table) for case in found] == counts
    assert ended - begun < 20_000


def test_bytes_outside_of_the_given_range_are_refused() -> None:
    (case, *_) = cases(1)
    read = readers(case)[1]
    for start, end in ((-1, 1), (2, 1), (0, len(case.data) + 1), (2**70, 2**70)):
        with pytest.raises((ValueError, OverflowError)):
            read(case.data, start, end, 1, 1)


def test_an_unreadable_value_is_named_by_column_and_byte() -> None:
    for seed in range(100):
        for case in cases(seed):
            try:
                readers(case)[1](case.data, 0, len(case.data), 1, 1)
            except ValueError as error:
                if str(error).startswith("column "):
                    return
    raise AssertionError("no case is cut off")
