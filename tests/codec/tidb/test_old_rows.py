"""Rows of format 1: the generated code reads what the plain path reads, and leaves to it what it can't."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tidemill.codec.tidb.column_type import Type
from tidemill.codec.tidb.columns import columns_of
from tidemill.codec.tidb.field import UNREADABLE
from tidemill.codec.tidb.old_row import split_row
from tidemill.codec.tidb.old_row_code import compile_old_rows
from tidemill.codec.tidb.row_decoder import RowDecoder
from tidemill.codec.tidb.row_encoder import RowEncoder
from tidemill.testing.damage import damaged

from .row_vectors import Vector, load

LENIENT = (Type.NEWDECIMAL, Type.FLOAT, Type.DOUBLE)
"""Types of which generated code reads bytes that no TiDB writes: words of too many digits, NaN."""

READERS: dict[int, Any] = {}
DECODERS: dict[int, RowDecoder] = {}
"""By table id."""


class Left(Exception):
    """The row was left to the plain path."""


def leave(_key: bytes, _value: bytes) -> Any:
    raise Left


def generated(vector: Vector, key: bytes, value: bytes) -> Any:
    if vector.info.id not in READERS:
        READERS[vector.info.id] = compile_old_rows(columns_of("vec", vector.info), leave)
    rows: list[Any] = []
    if READERS[vector.info.id]([(key, value)], rows.append) is not None:
        raise Left
    return repr(rows[0])


def plain(vector: Vector, key: bytes, value: bytes) -> Any:
    try:
        return repr(decoder_of(vector)._old_row(key, value))
    except UNREADABLE:
        return "refused"


def decoder_of(vector: Vector) -> RowDecoder:
    if vector.info.id not in DECODERS:
        DECODERS[vector.info.id] = RowDecoder("vec", vector.info)
    return DECODERS[vector.info.id]


def old_rows() -> list[Vector]:
    """Return the vectors of format 1, and the others converted to it."""
    found = []
    for vector in load("rows"):
        if vector.row_format == 2:
            (row,) = decoder_of(vector).decode([(vector.key, vector.value)])
            _, value = RowEncoder("vec", vector.info, row_format=1).encode(row, b"")
            vector = vector._replace(value=value, row_format=1)
        found.append(vector)
    return found


ROWS = old_rows()


def test_real_rows_are_read_by_generated_code():
    left = 0
    for vector in ROWS:
        try:
            assert generated(vector, vector.key, vector.value) == plain(vector, vector.key, vector.value)
        except Left:
            left += 1
            gone = split_row(vector.value).keys() - {column.id for column in vector.info.columns}
            assert gone, vector.info.name
    assert left < len(ROWS) / 8


@pytest.mark.parametrize("seed", range(8))
def test_damaged_rows_are_read_as_the_plain_path_reads_them(seed):
    random = Random(seed)
    read = 0
    for vector in ROWS * 2:
        if any(column.type in LENIENT for column in vector.info.columns):
            continue
        value = damaged(vector.value, random)
        try:
            row = generated(vector, vector.key, value)
        except Left:
            continue
        assert row == plain(vector, vector.key, value), (vector.info.name, value.hex())
        read += 1
    assert read > 5


def test_rows_of_both_formats_are_read_together():
    (vector, *_) = [vector for vector in load("rows") if vector.row_format == 2]
    old = next(row for row in ROWS if row.key == vector.key and row.info == vector.info)
    pairs = [(old.key, old.value), (vector.key, vector.value)] * 3
    assert len(set(map(repr, RowDecoder("vec", vector.info).decode(pairs)))) == 1
