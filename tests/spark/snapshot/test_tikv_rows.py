"""Rows of TiDB that are read at a ts, as Arrow batches, beside those of a feed's snapshot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import groupby
from random import Random
from typing import NoReturn

import pyarrow as pa
import pytest
from msgspec.structs import replace

from tidemill.codec.blocks import block_of
from tidemill.codec.native import library
from tidemill.codec.tidb.changes import ChangesDecoder
from tidemill.codec.tidb.layout import cells_of, layout_of
from tidemill.codec.tidb.row_decoder import RowDecoder
from tidemill.codec.tidb.run import KvBlock, KvRun
from tidemill.codec.tidb.table import to_table
from tidemill.codec.tidb.table_info import TableInfo
from tidemill.errors import SourceError
from tidemill.events import PUT, KvChange, RowChange, Run, Table
from tidemill.spark.read.pick import Pick
from tidemill.spark.read.typed import TypedEncoder

from ...codec.native.tidb import Case, cases
from ...codec.tidb.row_vectors import load

Pairs = Sequence[tuple[bytes, bytes]]


def of_snapshot(info: TableInfo, pairs: Pairs, names: Collection[str] | None = None) -> Run:
    """Return rows in any order, as those of a scan are read."""
    decoder = ChangesDecoder("s", info, only=names)
    changes = [KvChange(number, number, PUT, *pair) for number, pair in enumerate(pairs)]
    return KvRun(9, 9, decoder.table, "insert", None, KvBlock(decoder, block_of(changes)), 0, len(pairs))


def of_rows(info: TableInfo, pairs: Pairs) -> Run:
    """Return rows that were decoded one by one, by Python. Raises SourceError."""
    rows = RowDecoder("s", info)
    decoded = [RowChange(9, 9, rows.table, "insert", None, rows.row(*pair)) for pair in pairs]
    return Run(9, 9, rows.table, "insert", decoded)


def image(table: Table, run: Run) -> pa.Array:
    _, found = TypedEncoder(table, Pick(), invalid_dates="null").images([run])
    found.validate(full=True)
    return found


@pytest.mark.parametrize("is_native", [True, False])
@pytest.mark.parametrize("file", ["rows", "rows_checksum"])
def test_rows_that_tidb_wrote_are_the_same(
    file: str, is_native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "in_use", is_native and library.native is not None)
    random = Random(3)
    for _, vectors in groupby(load(file), lambda vector: (vector.info, vector.row_format)):
        found = list(vectors)
        info, pairs = found[0].info, [(vector.key, vector.value) for vector in found]
        check(info, pairs, random)


@pytest.mark.skipif(library.native is None, reason="the native decoder isn't built")
def test_some_columns_of_rows_with_checksums_are_read_natively() -> None:
    count = 0
    for _, vectors in groupby(load("rows_checksum"), lambda vector: (vector.info, vector.row_format)):
        found = list(vectors)
        info, keys, values = found[0].info, [one.key for one in found], [one.value for one in found]
        blocks = [block_of([KvChange(9, 9, PUT, *pair)]) for pair in zip(keys, values, strict=True)]
        whole = RowDecoder("s", info).layout
        try:
            columns = whole.columns(blocks, after=True)[1] if whole else []
        except ValueError:  # not even all columns are read natively
            continue
        for column, array in list(zip(to_table("s", info).columns, columns, strict=bool(columns)))[-1:]:
            some = RowDecoder("s", info, only=[column.name])
            assert some.layout is not None
            names = [one.name for one in some.table.columns]
            assert some.layout.columns(blocks, after=True)[1][names.index(column.name)].equals(array)
            pairs = list(zip(keys, values, strict=True))
            assert repr(some.layout.rows(pairs, _unread)) == repr([some.row(*pair) for pair in pairs])
            count += 1
    assert count > 10


def _unread(key: bytes, _value: bytes) -> NoReturn:
    raise AssertionError(f"the row of {key.hex()} is read by Python")


@pytest.mark.parametrize("is_native", [True, False])
def test_damage_in_a_column_that_is_not_asked_for_is_found(
    is_native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "in_use", is_native and library.native is not None)
    count = 0
    for vector in load("rows_checksum"):
        if vector.row_format != 2 or not vector.checksums:
            continue
        layout = layout_of(vector.value)
        cells = cells_of(layout, vector.value)
        *_, last = sorted(cells) or [0]
        names = [column.name for column in vector.info.columns if column.id in cells and column.id != last]
        if not names or not cells[last]:
            continue
        some = RowDecoder("s", vector.info, only=names[:1])
        assert some.decode([(vector.key, vector.value)])
        damaged = bytearray(vector.value)
        damaged[layout.data + sum(map(len, cells.values())) - 1] ^= 1
        with pytest.raises(SourceError, match="can't be read"):
            some.decode([(vector.key, bytes(damaged))])
        count += 1
    assert count > 3


def check(info: TableInfo, pairs: Pairs, random: Random) -> None:
    """Compare all columns, and some of them."""
    table = to_table("s", info)
    wanted = image(table, of_rows(info, pairs))
    assert image(table, of_snapshot(info, pairs)).equals(wanted)
    columns = random.sample(table.columns, random.randint(1, len(table.columns)))
    names = [column.name for column in columns]
    some = image(replace(table, columns=tuple(columns), key=()), of_snapshot(info, pairs, names))
    whole = RowDecoder("s", info)
    assert (whole.layout is None) == (RowDecoder("s", info, only=names).layout is None)
    assert [some.field(name) for name in names] == [wanted.field(name) for name in names]


@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(1000, 3000), marks=pytest.mark.soak)])
def test_random_rows_are_the_same_and_damaged_ones_are_the_same_errors(seeds: range) -> None:
    count = errors = 0
    for seed in seeds:
        for case in cases(seed):
            table = to_table("s", case.info)
            if case.keyless or not table.columns:
                continue
            if error(table, of_rows, case.info, case.pairs):
                check_errors(table, case)
                errors += 1
            else:
                check(case.info, case.pairs, Random(seed))
                count += 1
    assert min(count, errors) > 20


def check_errors(table: Table, case: Case) -> None:
    """Compare the errors of each row; of several damaged rows together, any may be named first."""
    named = []
    for pair in case.pairs:
        wanted = error(table, of_rows, case.info, [pair])
        found = error(table, of_snapshot, case.info, [pair])
        assert wanted in found
        assert bool(wanted) == bool(found)
        named += [wanted] if wanted else []
    together = error(table, of_snapshot, case.info, case.pairs)
    assert any(one in together for one in named)


def error(table: Table, run_of: Callable[[TableInfo, Pairs], Run], info: TableInfo, pairs: Pairs) -> str:
    """Return why the rows can't be read; empty if they can."""
    try:
        image(table, run_of(info, pairs))
    except SourceError as found:
        return str(found).removesuffix(f": {found.__cause__}")  # pyarrow has several words for one reason
    return ""
