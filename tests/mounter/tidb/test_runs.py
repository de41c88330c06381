"""Blocks of changes as parts of transactions: by the native module and in Python, decoded and as runs."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tidemill.codec.blocks import block_of, new_builder
from tidemill.codec.images import read_images
from tidemill.codec.native import library
from tidemill.codec.tidb.changes import TABLE_BYTES
from tidemill.codec.tidb.key import table_prefix
from tidemill.codec.tidb.packed import packed_changes
from tidemill.errors import SourceError
from tidemill.events import DELETE, PUT, Block, KvChange, RowChange, Run
from tidemill.mounter import RowReader, TableAt
from tidemill.mounter.tidb.items import Parts
from tidemill.mounter.tidb.runs import raw_parts, row_parts

from ...codec.native.tidb import cases

needs_native = pytest.mark.skipif(library.native is None, reason="the native decoder isn't built")


class Feed:
    """Random changes of up to four tables, of which one may not be followed; whole, or with damaged ones."""

    def __init__(self, seed: int, *, damaged: bool) -> None:
        random = Random(seed)
        self.tables: dict[bytes, TableAt | None] = {}
        rows: list[tuple[bytes, bytes]] = []
        for number in range(random.choice((1, 1, 2, 4))):
            whole, *others = cases(seed * 4 + number)
            if whole.keyless:
                continue
            prefix = table_prefix(random.choice((7, 300 + number)) + number)
            self.tables[prefix] = None if random.random() < 0.1 else TableAt("shop", whole.info, 0)
            for case in [whole, *others] if damaged else [whole]:
                rows += [(prefix + key[TABLE_BYTES:], value) for key, value in case.pairs]
        self.changes = [_change(rows, random) for _ in range(random.randrange(40) if rows else 0)]

    def block(self, *, native: bool) -> Block:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(library, "in_use", native)
            builder = new_builder()
            builder.extend(self.changes)
            return builder.take()

    def readers(self, *, native: bool) -> dict[bytes, RowReader | None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(library, "in_use", native)
            found = {prefix: table and RowReader(table) for prefix, table in self.tables.items()}
            for reader in found.values():
                assert reader is None or reader.rows.layout is None or native  # it is made in here
            return found


def _change(rows: list[tuple[bytes, bytes]], random: Random) -> KvChange:
    key, value = random.choice(rows)
    old = random.choice([value, *[other for at, other in rows if at[:TABLE_BYTES] == key[:TABLE_BYTES]]])
    old = random.choice((b"", old, value))
    ts = random.choice((9, 9, 10, 11))
    op = random.choice((DELETE, PUT, PUT))
    return KvChange(
        (1 << 60) + ts, (1 << 60) + random.choice((7, 8)), op, key, value if op == PUT else b"", old
    )


Way = Callable[..., Parts]


def parts_of(feed: Feed, way: Way, *, native: bool, reads_native: bool) -> Parts:
    block, readers = feed.block(native=native), feed.readers(native=reads_native)
    tables = block.by_prefix(TABLE_BYTES)
    return way(block, tables, {prefix: readers[prefix] for prefix in tables})


def told(feed: Feed, way: Way, *, native: bool, reads_native: bool) -> str:
    """Return the parts with their rows, or the error, as text."""
    try:
        parts = parts_of(feed, way, native=native, reads_native=reads_native)
        return repr([(*stamp, [*rows]) for *stamp, rows in _zipped(parts)])
    except SourceError as error:
        return str(error)


def _zipped(parts: Parts) -> list[tuple[int, int, Any]]:
    return list(zip(parts.commit_ts, parts.start_ts, parts.contents, strict=True))


def runs_told(feed: Feed, *, native: bool) -> list[object]:
    parts = parts_of(feed, raw_parts, native=native, reads_native=native)
    return [
        (*stamp, [(run.op, run.table, run.start, run.stop) for run in rows.runs])
        for *stamp, rows in _zipped(parts)
    ]


def compare(seed: int, *, damaged: bool) -> bool:
    """Compare all ways, and return True if the rows could be decoded."""
    feed = Feed(seed, damaged=damaged)
    pure = told(feed, row_parts, native=False, reads_native=False)
    is_whole = pure.startswith("[")
    for native, reads_native in ((True, True), (True, False), (False, True)):
        found = told(feed, row_parts, native=native, reads_native=reads_native)
        assert found == pure or not (is_whole or found.startswith("[")), seed
    raw = [told(feed, raw_parts, native=native, reads_native=native) for native in (True, False)]
    assert raw[0] == raw[1] or not any(one.startswith("[") for one in raw), seed
    if not is_whole:
        return False
    assert runs_told(feed, native=True) == runs_told(feed, native=False), seed
    _compare_columns(feed)
    return True


def _compare_columns(feed: Feed) -> None:
    """Compare Arrow columns and packed changes of all runs of each table with the rows."""
    found = []
    for native in (True, False):
        parts = parts_of(feed, raw_parts, native=native, reads_native=native)
        runs: list[Run] = [run for *_, rows in _zipped(parts) for run in rows.runs]
        for table in {id(run.table): run.table for run in runs}.values():
            own = [run for run in runs if run.table is table]
            packed = packed_changes(own)
            assert packed is not None
            found.append((native, packed[1]))
            images = read_images(own)
            assert images is None or native
            if images is None:
                continue
            rows = [row for run in own for row in run.changes()]
            for image, is_after in zip(images, (False, True), strict=True):
                absent = [(row.after if is_after else row.before) is None for row in rows]
                assert all(absent) == (image.columns is None)
                assert (image.absent.to_pylist() if image.absent else [all(absent)] * len(rows)) == absent
                for array in image.columns or ():
                    array.validate(full=True)
                    assert len(array) == len(rows)
    of_native, of_python = [[one for native, one in found if native is wanted] for wanted in (True, False)]
    assert [one.to_pylist() for one in of_native] == [one.to_pylist() for one in of_python]


@needs_native
def test_random_changes_are_the_same_by_all_ways() -> None:
    assert sum(compare(seed, damaged=False) for seed in range(40)) > 15
    for seed in range(40):
        compare(seed, damaged=True)


@pytest.mark.soak
@needs_native
def test_random_changes_are_the_same_by_all_ways_for_many_seeds() -> None:
    for seed in range(1_000, 4_000):
        compare(seed, damaged=seed % 2 == 0)


@needs_native
def test_rows_of_a_transaction_share_its_timestamps() -> None:
    whole = [seed for seed in range(10) if compare(seed, damaged=False)]
    parts = [
        part
        for seed in whole
        for part in _zipped(parts_of(Feed(seed, damaged=False), row_parts, native=True, reads_native=True))
    ]
    assert max(len(rows) for *_, rows in parts) > 1
    for commit_ts, start_ts, rows in parts:
        assert {(id(row.commit_ts), id(row.start_ts)) for row in rows} == {(id(commit_ts), id(start_ts))}


@pytest.mark.usefixtures("decoder")
def test_a_block_is_divided_by_the_begin_of_keys() -> None:
    keys = [b"b1", b"a2", b"", b"a", b"b", b"a1", b"c"]
    block = block_of([KvChange(9 - n % 2, 1, PUT, key, b"v") for n, key in enumerate(keys)])
    for size, wanted in ((0, [b""]), (1, [b"", b"a", b"b", b"c"]), (2, sorted(keys)), (99, sorted(keys))):
        found = block.by_prefix(size)
        assert list(found) == wanted
        for prefix, part in found.items():
            assert [*part] == [change for change in block if change.key[:size] == prefix]
            assert part.bytes == sum(48 + len(change.key) + 1 for change in part)
    assert block.by_prefix(0)[b""] is block
    assert block_of([]).by_prefix(9) == {}
    with pytest.raises(ValueError, match="0 bytes or more"):
        block.by_prefix(-1)


@needs_native
def test_arguments_of_other_types_are_refused() -> None:
    block = block_of([KvChange(9, 8, PUT, b"t2345678_r", b"v")])
    tables: list[tuple[Any, str]] = [
        ({"t": None}, "bytes"), ({b"t": 1}, "a tuple, or None"), ({b"t": (1, 2, 3, 4)}, "TidbLayout"),
    ]  # fmt: skip
    for way in (library.native.tidb_changes, library.native.tidb_transactions, library.native.tidb_runs):
        for given, why in tables:
            with pytest.raises(TypeError, match=why):
                way(block, given, RowChange)
        with pytest.raises(TypeError):
            way([*block], {}, RowChange)
        with pytest.raises(ValueError, match="none of the tables"):
            way(block, {b"t": None}, RowChange)
        with pytest.raises(ZeroDivisionError):
            way(block, {b"t2345678_": (None, None, lambda *_: 1 / 0, None)}, lambda *_: 1 / 0)
