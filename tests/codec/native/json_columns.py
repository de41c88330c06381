"""Arrow columns of every kind that JSON objects are written from, with random values."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from random import Random
from typing import Any

import msgspec
import pyarrow as pa

from tidemill.codec.image import Image
from tidemill.events import Column, Kind, Table

_EXACT = Context(prec=65)
_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001
ALPHABET = "".join(map(chr, (*range(160), 0x2028, 0xFFFD, 0x1F600)))
DOUBLES = (
    0.0, -0.0, 1e15, 1e16, -1e16, 1e17, 1e21, 1e22, 1e23, 0.0001, 1e-5, 1e-6, 1e-7, -1.5e-7, 5e-324,
    2.2250738585072014e-308, 1.7976931348623157e308, 9007199254740993.0, 123456789012345680.0, 0.1, 1 / 3,
    100.0, float("nan"), float("inf"), -float("inf"),
)  # fmt: skip
Make = Callable[[Random], Any]


def any_double(random: Random) -> float:
    """Return a double of any bits, or one of a form that is frequent."""
    (number,) = struct.unpack("<d", random.randbytes(8))
    return random.choice((number, random.choice(DOUBLES), random.randrange(10**6) / 100, random.random()))


def _integers(bits: int, *, unsigned: bool) -> Make:
    least, most = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return lambda random: random.choice((least, most, 0, random.randint(least, most), random.randint(0, 99)))


def _decimal(digits: int, scale: int) -> Make:
    def make(random: Random) -> Decimal:
        number = random.randrange(10 ** random.randint(0, digits)) * random.choice((1, -1))
        return Decimal(number).scaleb(-scale, _EXACT)

    return make


def _micros(random: Random, most: int, scale: int) -> timedelta:
    unit = 10 ** (6 - scale)
    micros = random.choice((0, unit, 10**6, 3_600_000_000, most, random.randint(0, most)))
    return timedelta(microseconds=micros // unit * unit)


def _time(scale: int) -> Make:
    return lambda random: (
        _micros(random, random.choice((3_020_399_999_999, 10**15)), scale) * random.choice((1, -1))
    )


def _moment(scale: int) -> Make:
    def make(random: Random) -> datetime:
        day = _EPOCH + _DAY * random.choice((0, -1, -719162, 2932896, random.randint(-719162, 2932896)))
        return day + _micros(random, 86_399_999_999, scale)

    return make


def _date(random: Random) -> date:
    ends = (date.min, date.max, date(1970, 1, 1), date(2000, 2, 29), date(1900, 3, 1))
    return random.choice((*ends, date.min + _DAY * random.randint(0, (date.max - date.min).days)))


def _size(random: Random) -> int:
    return random.choice((0, 1, 2, 3, 8, random.randint(0, 40), random.choice((1022, 1023, 1024, 5000))))


def _text(random: Random) -> str:
    characters = random.choice(("plain text, ", ALPHABET, "\1", 'a"'))
    return "".join(random.choices(characters, k=_size(random)))


def _bytes(random: Random) -> bytes:
    return random.randbytes(_size(random))


_BYTES: tuple[Kind, ...] = ("binary", "varbinary", "blob", "geometry", "vector")
_TEXTS: tuple[Kind, ...] = ("char", "varchar", "text", "enum", "set", "json", "uuid", "inet4", "inet6")
_INTEGERS: dict[Kind, int] = {"tinyint": 8, "smallint": 16, "mediumint": 32, "int": 32, "bigint": 64}
_DECIMALS = ((1, 0), (1, 1), (5, 5), (12, 2), (19, 0), (20, 6), (18, 9), (38, 0), (38, 18), (38, 38))
_FLOATS = (0.1, 1.5, 16777216.0, 1e-5, float("nan"))


def _float(random: Random) -> float:
    (number,) = struct.unpack("<f", random.randbytes(4))
    return random.choice((number, random.choice(_FLOATS)))


def _column(kind: Kind, type_: pa.DataType, make: Make, **details: Any) -> tuple[Column, pa.DataType, Make]:
    return Column("c", kind, **details), type_, make


_SIGNED, _UNSIGNED = (
    [
        _column(
            kind,
            getattr(pa, f"{'u' * unsigned}int{bits}")(),
            _integers(bits, unsigned=unsigned),
            unsigned=unsigned,
        )
        for kind, bits in _INTEGERS.items()
    ]
    for unsigned in (False, True)
)
COLUMNS: list[tuple[Column, pa.DataType, Make]] = [
    *_SIGNED, *_UNSIGNED,
    *[
        _column("decimal", pa.decimal128(digits, scale), _decimal(digits, scale), length=digits, scale=scale)
        for digits, scale in _DECIMALS
    ],
    _column("double", pa.float64(), any_double), _column("float", pa.float32(), _float),
    *[_column("bit", pa.uint64(), _integers(bits, unsigned=True), length=bits) for bits in (1, 53, 54, 64)],
    _column("year", pa.int16(), lambda random: random.choice((0, 1901, 2155))),
    _column("date", pa.date32(), _date),
    *[_column("time", pa.duration("us"), _time(scale), scale=scale) for scale in range(7)],
    *[_column("datetime", pa.timestamp("us"), _moment(scale), scale=scale) for scale in range(7)],
    *[_column("timestamp", pa.timestamp("us", "UTC"), _moment(scale), scale=scale) for scale in range(7)],
    *[_column(kind, pa.large_string(), _text) for kind in _TEXTS],
    *[_column(kind, pa.large_binary(), _bytes) for kind in _BYTES],
]  # fmt: skip
_NAMES = ("", "id", 'a "quoted" one', "größe", "tab\t", "back\\slash", "n" * 300)


def _sliced(array: pa.Array, random: Random, make: Callable[[int], pa.Array]) -> pa.Array:
    """Return an equal array that begins within its buffers."""
    before, after = random.randrange(20), random.randrange(3)
    return pa.concat_arrays([make(before), array, make(after)]).slice(before, len(array))


def random_image(random: Random) -> tuple[Table, Image, int]:
    """Return a table, the rows before or after changes of it, and the number of changes."""
    count, columns, arrays = random.choice((0, 1, 2, 9, 30)), [], []
    for column, type_, make in random.choices(COLUMNS, k=random.randint(1, 12)):
        share = random.choice((0, 0, 0.3, 1))

        def values(
            size: int, make: Make = make, type_: pa.DataType = type_, share: float = share
        ) -> pa.Array:
            return pa.array([None if random.random() < share else make(random) for _ in range(size)], type_)

        columns.append(msgspec.structs.replace(column, name=random.choice(_NAMES)))
        array = values(count)
        arrays.append(_sliced(array, random, values) if random.random() < 0.5 else array)
    absent = pa.array([random.random() < 0.3 for _ in range(count)], pa.bool_())
    absent = random.choice(
        (None, absent, _sliced(absent, random, lambda size: pa.array([True] * size, pa.bool_())))
    )
    return Table("shop", "t", tuple(columns)), Image(arrays, absent), count
