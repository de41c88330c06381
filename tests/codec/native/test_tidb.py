"""The native reader of TiDB's rows beside the one in Python."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest

from tidemill.codec.blocks import block_of
from tidemill.codec.native import library
from tidemill.codec.tidb.changes import ChangesDecoder
from tidemill.codec.tidb.columns import columns_of
from tidemill.codec.tidb.field import UNREADABLE
from tidemill.codec.tidb.native_rows import TidbRows, native_rows
from tidemill.codec.tidb.packed import packed_changes
from tidemill.codec.tidb.row_decoder import RowDecoder
from tidemill.codec.tidb.run import KvBlock, KvRun
from tidemill.codec.tidb.table_info import TableInfo
from tidemill.errors import SourceError
from tidemill.events import DELETE, PUT, Block, KvChange

from ..tidb.row_vectors import load
from .tidb import Case, cases

pytestmark = pytest.mark.skipif(library.native is None, reason="the native decoder isn't built")


def decoder(case: Case, *, native: bool) -> RowDecoder:
    made = RowDecoder("s", case.info, verify_checksums=case.verify_checksums, keyless=case.keyless)
    columns = columns_of("s", case.info)
    columns = columns.without_key() if case.keyless else columns
    verifies = case.verify_checksums
    made.layout = native_rows(columns, made.table, verify_checksums=verifies) if native else None
    return made


def outcome(read: RowDecoder, case: Case) -> str:
    """Return the rows, or the error, as text, with the sign of a zero."""
    try:
        return repr(read.decode(case.pairs))
    except SourceError as error:
        return str(error)


def compare(seed: int) -> int:
    """Compare the readers, and return the number of rows that the native one reads by itself."""
    count = 0
    for case in cases(seed):
        native = decoder(case, native=True)
        assert outcome(native, case) == outcome(decoder(case, native=False), case), seed
        if native.layout is not None:
            count += sum(map(bool, native.layout.rows(case.pairs, lambda *_: ())))
    return count


def test_random_rows_are_the_same_by_both_readers() -> None:
    assert sum(map(compare, (*range(60), 1468, 4312))) > 60  # the last: a damaged key, a NaN


@pytest.mark.soak
def test_random_rows_are_the_same_by_both_readers_for_many_seeds() -> None:
    assert sum(map(compare, range(1_000, 4_000))) > 3_000


def _blocks(pairs: list[tuple[bytes, bytes]]) -> list[Block]:
    """Return a block for each row, as rows come in any order."""
    return [block_of([KvChange(9, 8, PUT, *pair)]) for pair in pairs]


def compare_columns(seed: int) -> int:
    """Compare the arrays with the rows; return the number of cases that are read as arrays."""
    return sum(_are_equal(decoder(case, native=True), case.pairs, seed) for case in cases(seed))


def _are_equal(read: RowDecoder, pairs: list[tuple[bytes, bytes]], where: object) -> bool:
    """Return False for rows that aren't read as arrays."""
    if read.layout is None or not read.table.columns:
        return False
    blocks = [*_blocks(pairs), block_of([KvChange(9, 8, DELETE, b"", b"")])]
    try:
        has, arrays = read.layout.columns(blocks, after=True)
    except (pa.ArrowException, *UNREADABLE):
        return False
    assert has == b"\1" * len(pairs) + b"\0"
    for array in arrays:
        array.validate(full=True)
    for one, whole in zip(_of_packed(read, pairs), arrays, strict=True):
        assert repr(one.to_pylist()) == repr(whole.to_pylist()), where
    *rows, last = zip(*[array.to_pylist() for array in arrays], strict=True)
    text = repr(rows).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc")
    assert text == repr([read.row(*pair) for pair in pairs]), where
    assert set(last) == {None}
    return True


def _of_packed(read: RowDecoder, pairs: list[tuple[bytes, bytes]]) -> list[pa.Array]:
    """Return the arrays of the rows before deletes, and of a change without such a row, after another one."""
    others = [KvChange(9, 8, PUT, b"other", b"row"), KvChange(9, 8, PUT, b"", b"")]
    changes = [others[0], *[KvChange(9, 8, DELETE, key, b"", value) for key, value in pairs], others[1]]
    decoder = ChangesDecoder("s", TableInfo(id=7, name="t"))
    runs = [
        KvRun(9, 8, decoder.table, "delete", None, KvBlock(decoder, block_of([change])), 0, 1)
        for change in changes
    ]
    _, packed = packed_changes(runs) or (None, None)
    assert packed is not None
    assert read.layout is not None
    return read.layout.packed_columns(packed.slice(1), b"\1" * len(pairs) + b"\0", after=False)


def test_random_rows_have_the_same_values_as_columns() -> None:
    assert sum(map(compare_columns, range(60))) > 10


@pytest.mark.soak
def test_random_rows_have_the_same_values_as_columns_for_many_seeds() -> None:
    assert sum(map(compare_columns, range(1_000, 4_000))) > 500


@pytest.mark.parametrize("file", ["rows", "rows_checksum"])
def test_rows_that_tidb_wrote_are_the_same_by_both_readers(file: str) -> None:
    in_columns = 0
    vectors = load(file)
    for vector in vectors:
        pairs = [(vector.key, vector.value)]
        both = [
            decoder(Case(vector.info, keyless=False, pairs=pairs), native=native) for native in (True, False)
        ]
        assert repr(both[0].decode(pairs)) == repr(both[1].decode(pairs)), vector.info.name
        assert both[0].layout is not None
        in_columns += _are_equal(both[0], pairs, vector.info.name)
    assert in_columns > len(vectors) / 2


def test_changes_are_the_same_by_both_readers() -> None:
    count = 0
    for case in [case for seed in range(8) for case in cases(seed)]:
        (key, value), (_, other) = case.pairs[0], case.pairs[-1]
        changes = [
            KvChange(9, 5, PUT, key, value),
            KvChange(9, 6, PUT, key, value, other),
            KvChange(9, 7, DELETE, key, b"", value),
            KvChange(9, 8, DELETE, key, b""),
        ]
        found = []
        for native in (True, False):
            read = ChangesDecoder("s", case.info)
            read.rows = decoder(case, native=native)  # type: ignore[misc]
            read.table = read.rows.table  # type: ignore[misc]
            found += [_told(read.read, block_of(changes)), _told(read.read_each, changes)]
        assert len(set(found)) == 1
        count += found[0].endswith("None]")
    assert count


def _told(read: Callable[[Any], object], changes: object) -> str:
    try:
        return repr(read(changes))
    except SourceError as error:
        return str(error)


def _whole(seeds: range) -> list[tuple[TidbRows, Case]]:
    found = [(decoder(case, native=True), case) for seed in seeds for case in cases(seed)]
    return [(read.layout, case) for read, case in found if read.layout is not None]


def _read_all(found: list[tuple[TidbRows, Case]]) -> None:
    for layout, case in found:
        layout.rows(case.pairs, lambda _key, _value: ())
        try:
            layout.columns(_blocks(case.pairs), after=True)
        except (pa.ArrowException, *UNREADABLE):
            continue


def test_nothing_is_kept_of_what_was_read() -> None:
    found = _whole(range(20))
    for _ in range(2):  # printers of sets, decimals and Arrow keep what they saw first
        _read_all(found)
    gc.collect()
    counts = [sys.getrefcount(pair[1]) for _, case in found for pair in case.pairs]
    tracemalloc.start()
    try:
        _read_all(found)
        begun, _ = tracemalloc.get_traced_memory()
        for _ in range(10):
            _read_all(found)
        gc.collect()
        ended, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [sys.getrefcount(pair[1]) for _, case in found for pair in case.pairs] == counts
    assert ended - begun < 20_000


def test_several_threads_read_by_one_layout() -> None:
    found = _whole(range(10))
    expected = [repr(layout.rows(case.pairs, lambda *_: ())) for layout, case in found]
    made: list[list[str]] = []

    def read() -> None:
        made.append([repr(layout.rows(case.pairs, lambda *_: ())) for layout, case in found])

    threads = [Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [expected] * 4


def test_packed_changes_that_are_cut_off_are_refused() -> None:
    (layout, _), *_ = _whole(range(1))
    for piece in (b"", b"\0" * 7, b"\xff" * 20, b"\1\0\0\0\0\0\0\0"):
        with pytest.raises(ValueError, match="change 0 isn't whole"):
            layout.packed_columns(pa.array([piece], pa.binary()), b"\1", after=True)
    with pytest.raises(ValueError, match="an end for each change"):
        layout.packed_columns(pa.array([b"\0" * 8], pa.binary()), b"\1" * 100, after=True)


def test_arguments_of_other_types_are_refused() -> None:
    (layout, case), *_ = _whole(range(1))
    with pytest.raises(TypeError, match="key and its value"):
        layout.rows([(b"",)], lambda *_: ())  # type: ignore[list-item]
    with pytest.raises(TypeError, match="bytes"):
        layout.rows([("text", b"")], lambda *_: ())  # type: ignore[list-item]
    with pytest.raises(TypeError, match="in blocks"):
        layout.columns([case], after=True)  # type: ignore[list-item]
