"""The native reader of rows of the text protocol beside the one in Python."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from tidemill.codec.mysql.row_code import RowsReader
from tidemill.codec.mysql.text_rows import TextRowsDecoder
from tidemill.codec.mysql.values import UNREADABLE
from tidemill.codec.native import library
from tidemill.codec.native.mysql_text import TextLayout
from tidemill.events import Column, Kind, RowChange, Table
from tidemill.puller.mysql.packets import whole_rows

pytestmark = pytest.mark.skipif(library.native is None, reason="the native decoder isn't built")

_INTS = (
    "0 -0 1 -1 127 00042 9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809"
    " 18446744073709551615 18446744073709551616 1_0 +1 - 1.5"
)
_DOUBLES = (
    "0 -0 1.5 -1e300 0.1 1e-320 1e400 3.141592653589793 .5 5. 1e 1e+5 1E5 inf nan 0x1p3 1_0 - 1,5"
    " 123456789012345678901234567890"
)
_DECIMALS = "0.00 -0.00 1.25 -12.50 1.2 1.234 12 .25 1. 1e2 - 99999999999999999999999999999999999999.99 NaN"
_DATES = "2020-02-29 2021-02-29 0000-00-00 0001-01-01 9999-12-31 2020-1-01 20200101 2020-13-01 2020-00-10"
_TIMES = "00:00:00 -00:00:01 838:59:59.999999 -838:59:59 1:00:00 10:60:00 10:00:00.1 10:00:00. 10:00 -:0:0"
_CLOCKS = ("00:00:00", "23:59:59.999999", "24:00:00", "10:00:00.5", "10:00:00.1234567", "1:2:3", "10:00")
_MOMENTS = (*[f"{day} {clock}" for day in _DATES.split(" ") for clock in _CLOCKS], "2020-01-01T00:00:00", "")
_TEXTS = ("", "a", "grün", "x" * 260, b"\xff\xfe".decode("latin1"))
TEXTS: dict[Kind, tuple[str, ...]] = {
    **dict.fromkeys(("tinyint", "int", "bigint", "bit", "year"), (*_INTS.split(" "), "", " 1", "1 ")),
    **dict.fromkeys(("float", "double"), (*_DOUBLES.split(" "), "", " 1", "1" * 70)),
    "decimal": (*_DECIMALS.split(" "), "", " 1.00"),
    "date": (*_DATES.split(" "), "", "2020-02-29 "),
    "time": (*_TIMES.split(" "), ""),
    "datetime": _MOMENTS,
    "timestamp": _MOMENTS,
    "varchar": _TEXTS,
    "blob": _TEXTS,
    "enum": _TEXTS,
}


def packet(values: list[bytes | None]) -> bytes:
    payload = b"".join(b"\xfb" if value is None else _counted(value) for value in values)
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
            made.append(TextRowsDecoder(table).read)
    return made


def outcome(read: RowsReader, data: bytes) -> str:
    try:
        return repr(read(data, 0, len(data), 9, 8))
    except UNREADABLE:
        return "unreadable"


@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize("kind", TEXTS)
def test_every_text_is_the_same_value_by_both_readers(kind: Kind, unsigned: bool) -> None:
    column = Column("c", kind, unsigned=unsigned, length=40, scale=2)
    python, native = readers(Table("shop", "t", (column,)))
    for text in TEXTS[kind]:
        data = packet([text.encode("latin1" if kind == "blob" else "utf-8")])
        assert outcome(native, data) == outcome(python, data), text


def compare(seed: int) -> int:
    """Compare the readers on random rows, also damaged ones; return the number of readable ones."""
    random = Random(seed)
    kinds = random.choices(list(TEXTS), k=random.randint(1, 9))
    columns = [Column(f"c{i}", kind, length=40, scale=2) for i, kind in enumerate(kinds)]
    python, native = readers(Table("shop", "t", tuple(columns)))
    readable = 0
    for _ in range(6):
        rows = [
            [random.choice((None, *TEXTS[kind][:5])) for kind in kinds] for _ in range(random.randint(1, 4))
        ]
        data = b"".join(packet([None if text is None else text.encode() for text in row]) for row in rows)
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
    kind = random.choice(list(TEXTS))
    table = Table("shop", "t", (Column("c", kind, length=38, scale=2, unsigned=random.random() < 0.5),))
    texts = random.choices((None, *TEXTS[kind]), k=random.randint(1, 4))
    data = b"".join(packet([None if text is None else text.encode()]) for text in texts)
    wanted = outcome(readers(table)[0], data)
    try:
        (array,) = TextLayout(table).columns(data)
    except (pa.ArrowException, *UNREADABLE):
        return 0
    changes = [RowChange(9, 8, table, "insert", None, (value,)) for value in array.to_pylist()]
    found = repr(changes).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc")
    assert found == wanted, seed
    return 1


def test_random_rows_have_the_same_values_as_columns() -> None:
    assert sum(map(compare_columns, range(300))) > 60
