"""Row images of random tables: columns of all types, with values and with bytes that are none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Context, Decimal
from random import Random
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tidemill.codec.mysql.field import Field, Type, passed_over
from tidemill.codec.mysql.row_code import Images
from tidemill.codec.mysql.walk import Width
from tidemill.emulator.mysql.bits import bitmap
from tidemill.emulator.mysql.packed import datetime_bytes, decimal_bytes, time_bytes
from tidemill.events import Column, Kind, Op, Table

_EXACT = Context(prec=65)
_TEXTS = ("", "a", "abc", "grün", "日本", "\U0001f600", "x" * 300)


def _field(kind: Kind, type_: int, size: int = 0, **details: Any) -> Field:
    return Field(Column("c", kind, **details), type_, size)


FIELDS = [
    *[
        _field(kind, type_, unsigned=unsigned)
        for kind, type_ in (
            ("tinyint", Type.TINY), ("smallint", Type.SHORT), ("mediumint", Type.INT24), ("int", Type.LONG),
            ("bigint", Type.LONGLONG),
        )
        for unsigned in (False, True)
    ],
    *[
        _field("decimal", Type.NEWDECIMAL, length=digits, scale=scale)
        for digits, scale in (
            (1, 0), (5, 5), (10, 0), (12, 2), (18, 9), (20, 10), (38, 18), (38, 0), (65, 30),
        )
    ],
    _field("float", Type.FLOAT), _field("double", Type.DOUBLE),
    _field("bit", Type.BIT, length=1), _field("bit", Type.BIT, length=64),
    _field("year", Type.YEAR), _field("date", Type.DATE),
    _field("time", Type.TIME), _field("datetime", Type.DATETIME), _field("timestamp", Type.TIMESTAMP),
    *[_field("time", Type.TIME2, scale=scale) for scale in range(7)],
    *[_field("datetime", Type.DATETIME2, scale=scale) for scale in range(7)],
    *[_field("timestamp", Type.TIMESTAMP2, scale=scale) for scale in range(7)],
    _field("enum", Type.ENUM, 1, members=("a", "b")), _field("enum", Type.ENUM, 2, members=("x",) * 300),
    _field("set", Type.SET, 1, members=("a", "b", "c")), _field("set", Type.SET, 8, members=("y",) * 64),
    *[_field("char", Type.STRING, 100, charset=charset) for charset in ("utf8mb4", "latin1", "ucs2", "gbk")],
    *[_field("varchar", Type.VARCHAR, 1000, charset=charset) for charset in ("utf8mb3", "ascii", "swe7")],
    _field("varchar", Type.VARCHAR_COMPRESSED, 1000, charset="utf8mb4"),
    _field("binary", Type.STRING, 9), _field("varbinary", Type.VARCHAR, 1000),
    _field("blob", Type.BLOB_COMPRESSED, 2), _field("json", Type.BLOB, 4), _field("json", Type.JSON, 4),
    *[_field("blob", Type.BLOB, size) for size in (1, 2, 3, 4)],
    _field("uuid", Type.STRING, 16), _field("inet4", Type.STRING, 4), _field("inet6", Type.STRING, 16),
    _field("geometry", Type.GEOMETRY, 4), _field("vector", Type.VECTOR, 2),
]  # fmt: skip


def _decimal(field: Field, random: Random) -> bytes:
    column = field.column
    number = random.choice((0, 1, 99, random.randrange(10**column.length))) % 10**column.length
    value = Decimal(number * random.choice((1, -1))).scaleb(-column.scale, _EXACT)
    return decimal_bytes(value, column.length, column.scale)


def _moment(random: Random, scale: int) -> datetime:
    micros = random.randrange(10**scale) * 10 ** (6 - scale)
    year, month, day = random.randint(1, 9999), random.randint(1, 12), random.randint(1, 28)
    return datetime(year, month, day, 23, 59, 58, micros)  # noqa: DTZ001


def _date(field: Field, random: Random) -> bytes:
    day = _moment(random, 0)
    return (day.year << 9 | day.month << 5 | random.choice((0, 29, 30, 31, day.day))).to_bytes(3, "little")


def _time(field: Field, random: Random) -> bytes:
    micros = random.randint(-3_020_399_000_000, 3_020_399_000_000)
    return time_bytes(timedelta(microseconds=micros), field.column.scale)


_REGULAR: dict[int, Callable[[Field, Random], bytes]] = {
    Type.NEWDECIMAL: _decimal,
    Type.DATE: _date,
    Type.TIME2: _time,
    Type.DATETIME2: lambda field, random: datetime_bytes(
        _moment(random, field.column.scale), field.column.scale
    ),
}


def stored(field: Field, random: Random) -> bytes:
    """The bytes of a value: often a regular one, sometimes any bytes."""
    width = Width(0, field)
    if width.counted:
        text = random.choice(_TEXTS).encode()[: 255 if width.fixed == 1 else 1000]
        data = text if random.random() < 0.8 else random.randbytes(random.choice((1, 4, 16)))
        return len(data).to_bytes(width.fixed, "little") + data
    if field.type in _REGULAR and random.random() < 0.9:
        return _REGULAR[field.type](field, random)
    if field.type == Type.TIME:
        return random.choice((235959, -10203, 9961)).to_bytes(3, "little", signed=True)
    return random.choice((bytes(width.fixed), b"\1".ljust(width.fixed, b"\0"), random.randbytes(width.fixed)))


_OF_ANY_BYTES = {
    *(
        Type.TINY,
        Type.SHORT,
        Type.INT24,
        Type.LONG,
        Type.LONGLONG,
        Type.BIT,
        Type.ENUM,
        Type.SET,
        Type.STRING,
    ),
    *(Type.VARCHAR, Type.VARCHAR_COMPRESSED, Type.BLOB, Type.BLOB_COMPRESSED, Type.JSON, Type.GEOMETRY),
    Type.VECTOR,
}
"""Types of which any bytes are a value if they aren't looked at: where such a column is hidden, all decoders
read the same rows."""


def _named(field: Field, name: str, *, nullable: bool, hidden: bool) -> Field:
    column = field.column
    if not hidden or field.type not in _OF_ANY_BYTES:
        return replace(field, column=replace(column, name=name, nullable=nullable))
    return passed_over(name, field.type, field.size or column.length, nullable=nullable)


class Case(Struct):
    table: Table
    fields: list[Field]
    op: Op
    images: Images
    data: bytes


def cases(seed: int) -> Iterator[Case]:
    """Rows of a random table: whole, damaged and cut off."""
    random = Random(seed)
    fields = [
        _named(field, f"c{i}", nullable=random.random() < 0.7, hidden=random.random() < 0.1)
        for i, field in enumerate(random.choices(FIELDS, k=random.randint(1, 20)))
    ]
    table = Table("shop", "t", tuple(field.column for field in fields if not field.hidden))
    op: Op = random.choice(("insert", "update", "delete"))
    before, after = (
        tuple(i for i in range(len(fields)) if random.random() < share)
        for share in random.choice(((1, 1), (1, 1), (1, 0.5), (0.8, 0.8)))
    )
    images = Images(before, after if op == "update" else before)
    columns = (images.before, images.after) if op == "update" else (images.before,)
    rows = [_image(fields, one, random) for _ in range(random.randint(0, 4)) for one in columns]
    data = b"".join(rows)
    yield Case(table, fields, op, images, data)
    for _ in range(3 if data else 0):
        at = random.randrange(len(data))
        broken = random.choice((data[:at], data[:at] + random.randbytes(2) + data[at + 2 :], data + b"\0"))
        yield Case(table, fields, op, images, broken)


def _image(fields: Sequence[Field], columns: Sequence[int], random: Random) -> bytes:
    null = [random.random() < 0.2 and fields[i].column.nullable for i in columns]
    values = [stored(fields[i], random) for i, is_null in zip(columns, null, strict=True) if not is_null]
    return bitmap(null) + b"".join(values)
