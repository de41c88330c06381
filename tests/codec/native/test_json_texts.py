"""The native writer of JSON objects beside the one in Python."""

from __future__ import annotations

import json
import struct
import sys
from random import Random
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from tidemill.codec.image import Image
from tidemill.codec.mysql.native_rows import ImageLayout
from tidemill.codec.mysql.values import UNREADABLE
from tidemill.codec.native import json_texts as native_texts
from tidemill.codec.native import library
from tidemill.codec.native.json_texts import Field, JsonColumn
from tidemill.events import Column, Kind, Table
from tidemill.spark import json_text

from .images import cases
from .json_columns import ALPHABET, COLUMNS, DOUBLES, any_double, random_image

pytestmark = pytest.mark.skipif(library.native is None, reason="the native decoder isn't built")


def both(table: Table, image: Image, count: int) -> tuple[pa.Array, pa.Array]:
    """Return the texts by Python, and by the native writer."""
    found = []
    for in_use in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(library, "in_use", in_use)
            if in_use:
                patch.setattr(json_text, "_joined", None)  # so that Python doesn't help
            found.append(json_text.json_texts(table, image, count))
            found[-1].validate(full=True)
            assert found[-1].type == pa.string()
    python, native = found
    return python, native


def assert_equal(table: Table, image: Image, count: int, where: object = None) -> pa.Array:
    python, native = both(table, image, count)
    assert native.to_pylist() == python.to_pylist(), where
    assert native.null_count == python.null_count
    return native


def compare(seed: int) -> int:
    """Compare the writers; return the number of rows."""
    random = Random(seed)
    table, image, count = random_image(random)
    texts = assert_equal(table, image, count, seed)
    assert all(text is None or json.loads(text) for text in texts.to_pylist())
    _damaged(table, image, count, random)
    return count


def _damaged(table: Table, image: Image, count: int, random: Random) -> None:
    """Write with buffers that are too small or have other bytes, which must be refused or written anyhow."""
    assert image.columns is not None
    columns = [
        native_texts._column(Field('"c":', True, column.scale, values), "")
        for column, values in zip(table.columns, image.columns, strict=True)
    ]
    for place, column in enumerate(columns):
        name = random.choice(("validity", "offsets", "values", "first", "width", "output", "scale"))
        given = getattr(column, name)
        other: Any
        if isinstance(given, int):
            other = random.choice((-1, given + 1, given + 1000, 2**31 - 1))
        else:
            data = b"" if given is None else given.to_pybytes()
            cut = data[: random.randint(0, len(data))]
            other = random.choice((cut, random.randbytes(len(data)), None, b"\xff" * len(data)))
        changed = (*columns[:place], column._replace(**{name: other}), *columns[place + 1 :])
        try:
            library.native.json_texts(changed, count, None, 0, native_texts.powers_of_ten(), 2**31 - 1)
        except (ValueError, OverflowError):
            continue


def test_random_columns_have_the_same_texts_by_both_writers() -> None:
    assert sum(map(compare, range(300))) > 1_000


@pytest.mark.soak
def test_random_columns_have_the_same_texts_by_both_writers_for_many_seeds() -> None:
    assert sum(map(compare, range(1_000, 20_000))) > 100_000


def compare_images(seed: int) -> int:
    """Compare the writers on the columns of row images; return the number of readable cases."""
    found = 0
    for case in cases(seed):
        layout = ImageLayout(case.fields)
        try:
            starts = layout.starts(case.data, 0, len(case.data))
            arrays = layout.columns([case.data], [starts])
        except (pa.ArrowException, *UNREADABLE):
            continue
        assert_equal(case.table, Image(arrays, None), len(starts), seed)
        found += 1
    return found


def test_row_images_have_the_same_texts_by_both_writers() -> None:
    assert sum(map(compare_images, range(150))) > 20


@pytest.mark.soak
def test_row_images_have_the_same_texts_by_both_writers_for_many_seeds() -> None:
    assert sum(map(compare_images, range(1_000, 7_000))) > 1_000


def _column(kind: Kind, array: pa.Array, **details: Any) -> pa.Array:
    table = Table("shop", "t", (Column("c", kind, **details),))
    return assert_equal(table, Image([array], None), len(array))


def compare_doubles(random: Random, count: int) -> None:
    numbers = [any_double(random) for _ in range(count)]
    assert _column("double", pa.array(numbers, pa.float64())).to_pylist() == [
        msgspec.json.encode({"c": number}).decode() for number in numbers
    ]


def test_doubles_are_those_of_msgspec() -> None:
    powers = [sign * 10.0**power for power in range(-323, 309) for sign in (1, -1)]
    halves = [2.0**power for power in range(-1074, 1024)]
    near = [number + unit for number in (1e15, 2.0**53, 1e16) for unit in range(-9, 10)]
    numbers = [*DOUBLES, *powers, *halves, *near]
    texts = _column("double", pa.array(numbers, pa.float64())).to_pylist()
    assert texts == [msgspec.json.encode({"c": number}).decode() for number in numbers]
    compare_doubles(Random(1), 20_000)


@pytest.mark.soak
def test_doubles_are_those_of_msgspec_for_many_of_them() -> None:
    for seed in range(50):
        compare_doubles(Random(seed), 200_000)


def test_every_character_is_escaped_as_by_msgspec() -> None:
    characters = [chr(code) for code in (*range(0xD800), *range(0xE000, 0x11000))]
    places = [
        before + character + after
        for character in ALPHABET
        for before in ("", "1234567")
        for after in ("", "8")
    ]
    texts = _column("text", pa.array([*characters, *places], pa.large_string())).to_pylist()
    assert texts == [msgspec.json.encode({"c": text}).decode() for text in (*characters, *places)]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 1022, 1023, 1024, 1025, 2046, 300_000])
def test_long_texts_and_bytes_are_whole(size: int) -> None:
    data = Random(size).randbytes(size)
    (found,) = _column("blob", pa.array([data], pa.large_binary())).to_pylist()
    assert found == msgspec.json.encode({"c": data}).decode()
    for text in ("x" * size, '"' * size, "ü" * size):
        (found,) = _column("text", pa.array([text], pa.large_string())).to_pylist()
        assert found == msgspec.json.encode({"c": text}).decode()


@pytest.mark.parametrize("count", [0, 1, 9])
def test_a_row_without_columns_is_an_empty_object(count: int) -> None:
    table = Table("shop", "t", ())
    assert assert_equal(table, Image([], None), count).to_pylist() == ["{}"] * count
    absent = pa.array([bool(row % 2) for row in range(count)], pa.bool_())
    wanted = [None if row % 2 else "{}" for row in range(count)]
    assert assert_equal(table, Image([], absent), count).to_pylist() == wanted


def test_no_row_has_no_text() -> None:
    columns = tuple(column for column, _, _ in COLUMNS)
    arrays = [pa.array([], type_) for _, type_, _ in COLUMNS]
    assert len(assert_equal(Table("shop", "t", columns), Image(arrays, None), 0)) == 0


def _by_both(table: Table, image: Image, count: int, monkeypatch: pytest.MonkeyPatch) -> list[pa.Array]:
    """Return the texts by Python, and those where Python may help the native writer."""
    found = []
    for in_use in (False, True):
        monkeypatch.setattr(library, "in_use", in_use)
        found.append(json_text.json_texts(table, image, count))
    return found


@pytest.mark.parametrize(
    ("kind", "array"),
    [
        ("date", pa.array([-719163, 0, 2932897], pa.int32()).view(pa.date32())),
        ("datetime", pa.array([-719163 * 86_400_000_000, 2932897 * 86_400_000_000], pa.timestamp("us"))),
        ("text", pa.array(["a", None])),
        ("datetime", pa.array([1, 2], pa.timestamp("s"))),
    ],
    ids=["dates", "moments", "string", "seconds"],
)
def test_python_writes_what_the_native_writer_does_not(kind: Kind, array: pa.Array, monkeypatch) -> None:
    table = Table("shop", "t", (Column("c", kind),))
    with pytest.raises(ValueError, match="by Python"):
        native_texts.json_texts([Field('"c":', True, 0, array)], len(array), None)
    python, native = _by_both(table, Image([array], None), len(array), monkeypatch)
    assert native.equals(python)


def test_texts_that_are_too_large_for_an_array_are_left_to_python(monkeypatch) -> None:
    table = Table("shop", "t", (Column("c", "text"),))
    image = Image([pa.array(["x" * 100] * 9, pa.large_string())], None)
    size = 9 * len('{"c":""}') + 900
    for most, fits in ((size, True), (size - 1, False)):
        monkeypatch.setattr(native_texts, "MOST_BYTES", most)
        if not fits:
            with pytest.raises(OverflowError, match="too large for one array"):
                native_texts.json_texts([Field('"c":', True, 0, image.columns[0])], 9, None)
        python, native = _by_both(table, image, 9, monkeypatch)
        assert native.equals(python)


def test_buffers_that_lack_rows_are_refused() -> None:
    powers = native_texts.powers_of_ten()
    good = JsonColumn(library.native.AS_INT, 4, 0, False, b'"c":', 0, None, None, bytes(8))
    (_, _, texts) = library.native.json_texts((good,), 2, None, 0, powers, 100)
    assert bytes(texts) == b'{"c":0}{"c":0}'
    text = good._replace(output=library.native.AS_TEXT, width=0, values=b"ab")
    ends = struct.pack("<qqq", 0, 1, 2)
    (_, _, texts) = library.native.json_texts((text._replace(offsets=ends),), 2, None, 0, powers, 100)
    assert bytes(texts) == b'{"c":a}{"c":b}'
    for column in (
        good._replace(values=bytes(7)),
        good._replace(first=1),
        good._replace(first=-1),
        good._replace(first=sys.maxsize),
        good._replace(width=3),
        good._replace(output=library.native.AS_OTHER),
        good._replace(validity=b""),
        good._replace(output=library.native.AS_DECIMAL, width=16, scale=39, values=bytes(32)),
        good._replace(output=library.native.AS_DURATION, width=8, scale=7, values=bytes(16)),
        text._replace(offsets=None),
        text._replace(offsets=ends[:23]),
        text._replace(offsets=struct.pack("<qqq", 0, 1, 3)),
        text._replace(offsets=struct.pack("<qqq", 0, -1, 2)),
        text._replace(offsets=struct.pack("<qqq", 1, 0, 2)),
    ):
        with pytest.raises(ValueError, match=r"have its rows|by Python"):
            library.native.json_texts((column,), 2, None, 0, powers, 100)
    for rows, mask, first, its_powers, most in (
        (-1, None, 0, powers, 100),
        (2, b"\1", 7, powers, 100),
        (2, b"\1", -1, powers, 100),
        (2, None, 0, powers[1:], 100),
        (2, None, 0, powers, 2**31),
    ):
        with pytest.raises(ValueError, match="aren't whole"):
            library.native.json_texts((good,), rows, mask, first, its_powers, most)
    with pytest.raises(TypeError, match="is a tuple"):
        library.native.json_texts((7,), 2, None, 0, powers, 100)  # type: ignore[arg-type]


def test_nothing_is_kept_of_what_was_read() -> None:
    values, validity = bytes(800), bytes(100)
    columns = (JsonColumn(library.native.AS_INT, 4, 0, False, b'"c":', 0, validity, None, values),)
    counts = [sys.getrefcount(one) for one in (columns, columns[0], values, validity)]
    for rows in (200, 201, 200):
        try:
            library.native.json_texts(columns, rows, validity, 0, native_texts.powers_of_ten(), 5_000)
        except ValueError:
            assert rows == 201
    assert [sys.getrefcount(one) for one in (columns, columns[0], values, validity)] == counts
