"""The native reader of rows of the binary protocol beside the one in Python."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from struct import pack

import pyarrow as pa
import pytest

from tidemill.codec.mysql.native_result import ResultLayout
from tidemill.codec.mysql.result_rows import ResultRowsDecoder, bitmap_bytes, number_format
from tidemill.codec.mysql.row_code import RowsReader
from tidemill.codec.mysql.values import UNREADABLE
from tidemill.codec.native import library
from tidemill.dialects.mysql.packets import whole_rows
from tidemill.events import Column, Kind, RowChange, Table

pytestmark = pytest.mark.skipif(library.native is None, reason="the native decoder isn't built")

_DECIMALS = b"0.00 -0.00 1.25 -12.50 1.2 1.234 12 .25 1. 1e2 - 99999999999999999999999999999999999999.99 NaN"
_DOUBLES = (0.0, -0.0, 1.5, -1e300, 0.1, 5e-324, 3.141592653589793, float("inf"), float("nan"))
_FLOATS = (0.0, -0.0, 1.5, 0.1, 1e-45, 3.4e38, float("-inf"))
_DAYS = [
    pack("<HBB", *day)
    for day in (
        (2020, 2, 29), (2021, 2, 29), (0, 0, 0), (1, 1, 1), (9999, 12, 31), (10000, 1, 1), (2020, 13, 1),
        (2020, 0, 10), (2020, 1, 32), (1969, 12, 31), (1970, 1, 1),
    )
]  # fmt: skip
_CLOCKS = [
    *(bytes(clock) for clock in ((0, 0, 0), (23, 59, 59), (24, 0, 0), (10, 60, 0), (10, 0, 60))),
    *(bytes((10, 0, 1)) + pack("<I", micros) for micros in (0, 1, 999_999, 1_000_000, 2**32 - 1)),
]
_MOMENTS = (b"", *_DAYS, *(day + clock for day in _DAYS for clock in _CLOCKS), _DAYS[0][:3], _DAYS[0] + b"\1")
_TIMES = [
    pack("<BI", sign, days) + clock
    for sign in (0, 1, 2)
    for days in (0, 1, 34, 35, 2**32 - 1)
    for clock in _CLOCKS
]
_TEXTS = (b"", b"a", "grün".encode(), b"x" * 260, b"\xff\xfe")


def _integers(size: int) -> tuple[bytes, ...]:
    numbers = (0, 1, 7, 2 ** (8 * size - 1) - 1, 2 ** (8 * size - 1), 2 ** (8 * size) - 1)
    return tuple(number.to_bytes(size, "little") for number in numbers)


STORED: dict[Kind, tuple[bytes, ...]] = {
    "tinyint": _integers(1),
    "smallint": _integers(2),
    "year": tuple(pack("<H", year) for year in (0, 1901, 2155)),
    "mediumint": tuple(pack("<i", number) for number in (0, -1, 2**23 - 1, -(2**23))),
    "int": _integers(4),
    "bigint": _integers(8),
    "float": tuple(pack("<f", value) for value in _FLOATS),
    "double": tuple(pack("<d", value) for value in _DOUBLES),
    "bit": (b"", b"\0", b"\1\2", b"\xff" * 8, b"\0" * 9),
    "decimal": (*_DECIMALS.split(b" "), b"", b" 1.00"),
    "date": (*_DAYS, b"", _DAYS[0][:3], _DAYS[0] + b"\0"),
    "time": (*_TIMES, b"", b"\0" * 7, b"\0" * 11),
    "datetime": _MOMENTS,
    "timestamp": _MOMENTS,
    "varchar": _TEXTS,
    "blob": _TEXTS,
    "enum": _TEXTS,
}
"""Stored bytes of values, also of impossible ones, without the length before them."""


def packet(columns: Sequence[Column], values: Sequence[bytes | None]) -> bytes:
    nulls = sum(1 << number + 2 for number, value in enumerate(values) if value is None)
    payload = b"\0" + nulls.to_bytes(bitmap_bytes(len(columns)), "little")
    for column, value in zip(columns, values, strict=True):
        if value is not None:
            payload += value if number_format(column) is not None else _counted(value)
    return len(payload).to_bytes(3, "little") + b"\0" + payload


def _counted(value: bytes) -> bytes:
    size = len(value)
    return bytes((size,)) + value if size < 251 else b"\xfc" + size.to_bytes(2, "little") + value


def readers(table: Table) -> list[RowsReader]:
    """Return the reader in Python, and the native one."""
    with pytest.MonkeyPatch.context() as patch:
        made = []
        for in_use in (False, True):
            patch.setattr(library, "in_use", in_use)
            made.append(ResultRowsDecoder(table).read)
    return made


def outcome(read: RowsReader, data: bytes) -> str:
    try:
        return repr(read(data, 0, len(data), 9, 8))
    except UNREADABLE:
        return "unreadable"


@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize("kind", STORED)
def test_all_stored_bytes_are_the_same_value_by_both_readers(kind: Kind, unsigned: bool) -> None:
    column = Column("c", kind, unsigned=unsigned, length=40, scale=2)
    python, native = readers(Table("shop", "t", (column,)))
    readable = 0
    for value in STORED[kind]:
        data = packet([column], [value])
        wanted = outcome(python, data)
        assert outcome(native, data) == wanted, value
        readable += wanted != "unreadable"
    assert readable >= 2


def compare(seed: int) -> int:
    """Compare the readers on random rows, also damaged ones; return the number of readable ones."""
    random = Random(seed)
    kinds = random.choices(list(STORED), k=random.randint(1, 19))
    columns = [Column(f"c{i}", kind, length=40, scale=2) for i, kind in enumerate(kinds)]
    python, native = readers(Table("shop", "t", tuple(columns)))
    readable = 0
    for _ in range(6):
        rows = [
            [random.choice((None, *STORED[kind][:5])) for kind in kinds] for _ in range(random.randint(1, 4))
        ]
        data = b"".join(packet(columns, row) for row in rows)
        at = random.randrange(len(data))
        broken = data[:at], data[:at] + random.randbytes(1) + data[at + 1 :], data
        for one in broken:
            wanted = outcome(python, one)
            assert outcome(native, one) == wanted, seed
            assert library.native.whole_rows(one, 0) == whole_rows(one, 0), seed
            readable += wanted != "unreadable"
    return readable


def test_random_rows_are_the_same_by_both_readers() -> None:
    assert sum(map(compare, range(30))) > 60


@pytest.mark.soak
def test_random_rows_are_the_same_by_both_readers_for_many_seeds() -> None:
    assert sum(map(compare, range(1_000, 4_000))) > 9_000


def compare_columns(seed: int) -> int:
    """Compare the arrays of rows of one kind with the rows; return the number of readable cases."""
    random = Random(seed)
    kind = random.choice(list(STORED))
    column = Column("c", kind, length=38, scale=2, unsigned=random.random() < 0.5)
    table = Table("shop", "t", (column,))
    values = random.choices((None, *STORED[kind]), k=random.randint(1, 4))
    data = b"".join(packet([column], [value]) for value in values)
    wanted = outcome(readers(table)[0], data)
    try:
        (array,) = ResultLayout(table).columns(data)
    except (pa.ArrowException, *UNREADABLE):
        return 0
    changes = [RowChange(9, 8, table, "insert", None, (value,)) for value in array.to_pylist()]
    found = repr(changes).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc")
    assert found == wanted, seed
    return 1


def test_random_rows_have_the_same_values_as_columns() -> None:
    assert sum(map(compare_columns, range(300))) > 60
