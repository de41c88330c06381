"""Rows of random tables of TiDB: columns of all types, with values and with bytes that are none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Context, Decimal
from random import Random
from typing import Any
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from tidemill.codec.decimal import encode_decimal
from tidemill.codec.tidb.checksum import checksum_of
from tidemill.codec.tidb.column_type import ColumnFlag, Type
from tidemill.codec.tidb.columns import Columns, columns_of
from tidemill.codec.tidb.datum import Flag, encode_datum
from tidemill.codec.tidb.field import UNREADABLE, Field, field_of
from tidemill.codec.tidb.json import encode_json
from tidemill.codec.tidb.key import record_key
from tidemill.codec.tidb.layout import VERSION, build_row
from tidemill.codec.tidb.old_row import join_row
from tidemill.codec.tidb.storage import UINT
from tidemill.codec.tidb.table_info import ColumnInfo, IndexColumn, IndexInfo, TableInfo
from tidemill.codec.tidb.time import pack
from tidemill.testing.damage import damaged

from ..tidb.tables import TEXT, column

_TEXTS = ("", "a", "abc", "abcdefgh", "grün", "日本", "\U0001f600", "x" * 300)
_JSON = (None, True, [1, -2.5, {}], {"k": "ü", "kk": [{}]}, "text", 1 << 40, -1.5, "y" * 200)
_EXACT = Context(prec=65)

COLUMNS = [
    *[
        column(2, type_, flags)
        for type_ in (Type.TINY, Type.SHORT, Type.INT24, Type.LONG, Type.LONGLONG)
        for flags in (0, ColumnFlag.UNSIGNED)
    ],
    column(2, Type.FLOAT), column(2, Type.DOUBLE), column(2, Type.YEAR, ColumnFlag.UNSIGNED),
    *[
        column(2, Type.NEWDECIMAL, length=digits, decimal=scale)
        for digits, scale in (
            (1, 0), (5, 5), (10, 0), (12, 2), (18, 9), (20, 10), (38, 18), (38, 0), (65, 30),
        )
    ],
    column(2, Type.DATE),
    *[
        column(2, type_, decimal=scale)
        for type_ in (Type.DATETIME, Type.TIMESTAMP, Type.TIME)
        for scale in (0, 3, 6)
    ],
    column(2, Type.BIT, ColumnFlag.UNSIGNED, length=1), column(2, Type.BIT, ColumnFlag.UNSIGNED, length=64),
    column(2, Type.ENUM, elements=("a", "b", "ü"), **TEXT),
    column(2, Type.SET, elements=("p", "q", "r"), **TEXT),
    column(2, Type.JSON), column(2, Type.VARCHAR, length=100, **TEXT),
    column(2, Type.STRING, length=9, **TEXT),
    column(2, Type.BLOB, **TEXT), column(2, Type.LONG_BLOB), column(2, Type.STRING, length=4),
]  # fmt: skip

_DEFAULTS: dict[str, tuple[str, ...]] = {
    "int": ("7", "-1"),
    "bigint": ("1",),
    "varchar": ("dé", ""),
    "decimal": ("1", "0"),
    "datetime": ("2024-02-29 01:02:03", "0000-00-00 00:00:00"),
    "timestamp": ("2024-02-29 01:02:03.5",),
    "time": ("-01:02:03.5",),
    "enum": ("b", "none"),
    "set": ("p,q",),
    "json": ("[1]",),
    "double": ("1.5", "text"),
}


def _moment(field: Field, random: Random, wild: float) -> int:
    if random.random() < wild:
        return random.choice((0, pack((2023, 2, 30, 0, 0, 0, 0)), random.randrange(1 << 64)))
    year = random.choice((1, 1969, 1970, 2024, 9999))
    clock = (23, 59, 58, random.randrange(1_000_000)) if field.kind != "date" else (0, 0, 0, 0)
    return pack((year, random.randint(1, 12), random.randint(1, 28), *clock))


def _decimal(field: Field, random: Random, wild: float) -> bytes:
    digits, scale = field.column.length, field.scale
    number = random.choice((0, 1, 99, random.randrange(10**digits))) % 10**digits
    value = Decimal(number * random.choice((1, -1))).scaleb(-scale, _EXACT)
    return (
        encode_decimal(value, digits, scale) if random.random() >= wild else encode_decimal(Decimal(1), 3, 1)
    )


def _bare(field: Field, random: Random, wild: float) -> Any:
    """Return a stored value; with a probability of `wild` any that the storage permits."""
    match field.kind:
        case "float" | "double":
            return random.choice((0.0, -1.5, 0.1, 1e300, float(random.randint(-9, 9)) / 4))
        case "decimal":
            return _decimal(field, random, wild)
        case "date" | "datetime" | "timestamp":
            return _moment(field, random, wild)
        case "time":
            if random.random() < wild:
                return random.randint(-(1 << 62), 1 << 62)
            return random.choice((0, -1, 1_239_999_999, -1_239_999_999))
        case "enum" | "set":
            return random.randrange(1 << 64) if random.random() < wild else random.choice((0, 1, 2, 3))
        case "json":
            return encode_json(random.choice(_JSON))
        case "char" | "varchar" | "text" | "binary" | "varbinary" | "blob":
            return random.randbytes(9) if random.random() < wild else random.choice(_TEXTS).encode()
    if random.random() < wild:
        return random.randrange(1 << 63)
    return random.choice((0, 1, 99, random.randrange(1 << 7), 127 if field.storage is UINT else -128))


class Case(Struct):
    info: TableInfo
    keyless: bool
    pairs: list[tuple[bytes, bytes]]
    verify_checksums: bool = True


def cases(seed: int) -> Iterator[Case]:
    """Rows of a random table: whole, damaged and cut off."""
    random = Random(seed)
    columns = [
        _placed(random.choice(COLUMNS), random.randint(i, 4 * i) if random.random() < 0.1 else i, random)
        for i in range(1, random.randint(2, 20))
    ]
    columns = [replace(one, id=i + 1, name=f"c{i}", offset=i) for i, one in enumerate(columns)]
    if random.random() < 0.1:
        columns = [replace(one, id=one.id * 100) for one in columns]
    info = _keyed(columns, random)
    keyless = random.random() < 0.1
    dropped = [replace(one, id=one.id + 50_000) for one in columns if random.random() < 0.05]
    fields = [field_of(one) for one in info.columns if _is_old(one, info, random)] + [*map(field_of, dropped)]
    wild = random.choice((0, 0, 0.1))
    checksums = random.choice((0.05, 0.05, 0.5))
    pairs = [
        _pair(info, fields, random, wild, checksums, keyless=keyless) for _ in range(random.randint(1, 6))
    ]
    verifies = random.random() < 0.8
    yield Case(info, keyless, pairs, verifies)
    for _ in range(4):
        key, value = random.choice(pairs)
        if random.random() < 0.2:
            key = damaged(key, random)
        else:
            value = random.choice((damaged(value, random), value[: random.randrange(len(value))]))
        yield Case(info, keyless, [pairs[0], (key, value)], verifies)


def _placed(found: ColumnInfo, id_: int, random: Random) -> ColumnInfo:
    flags = found.flags | (ColumnFlag.NOT_NULL if random.random() < 0.3 else 0)
    return replace(found, id=id_, flags=flags, hidden=random.random() < 0.05)


def _is_old(one: ColumnInfo, info: TableInfo, random: Random) -> bool:
    """True if rows have the column; it may have come later."""
    in_key = one.flags & ColumnFlag.PRI_KEY or any(
        part.name == one.name for i in info.indexes for part in i.columns
    )
    return bool(in_key) or random.random() < 0.9


def _keyed(columns: list[ColumnInfo], random: Random) -> TableInfo:
    with_defaults = []
    for one in columns:
        texts = _DEFAULTS.get(field_of(one).kind, ())
        default = random.choice(texts) if texts and random.random() < 0.5 else None
        with_defaults.append(replace(one, origin_default=default))
    info = TableInfo(id=7, name="t", columns=tuple(with_defaults))
    kind = random.randrange(4)
    if kind == 0:  # the hidden handle
        return info
    if kind == 1:
        unsigned = random.choice((0, ColumnFlag.UNSIGNED))
        flags = ColumnFlag.PRI_KEY | ColumnFlag.NOT_NULL | unsigned
        first = replace(column(1, Type.LONGLONG, flags), id=info.columns[0].id, name="c0")
        return replace(info, columns=(first, *info.columns[1:]), pk_is_handle=True)
    places = random.sample(range(len(columns)), min(len(columns), random.randint(1, 3)))
    parts = tuple(IndexColumn(columns[place].name, place, random.choice((-1, -1, -1, 2))) for place in places)
    index = IndexInfo(id=1, name="PRIMARY", columns=parts, unique=True, primary=True)
    return replace(info, indexes=(index,), is_common_handle=True)


def _pair(
    info: TableInfo,
    fields: Sequence[Field],
    random: Random,
    wild: float,
    checksums: float,
    *,
    keyless: bool,
) -> tuple[bytes, bytes]:
    """Return a key and a value, with a probability of `checksums` with one or two of them."""
    columns = columns_of("s", info)
    bare = {
        field.column.id: None if random.random() < 0.1 else _bare(field, random, wild) for field in fields
    }
    handle: int | bytes = random.randint(-(1 << 63), (1 << 63) - 1)
    in_key: set[int] = set()
    if columns.handle is not None:
        in_key.add(columns.handle)
    elif columns.common_handle:
        datums = []
        for id_ in columns.common_handle:
            field = next(one for one in fields if one.column.id == id_)
            bare[id_] = _bare(field, random, wild)
            datums.append(encode_datum(field.storage.key_flag, bare[id_]))
        handle = b"".join(datums)
        in_key = set(columns.common_handle) - (columns.prefixes if random.random() < 0.9 else set())
    if keyless or random.random() < 0.05:
        in_key = set()
    stored = [field for field in fields if field.column.id not in in_key]
    if random.random() < 0.5:
        random.shuffle(stored)
    key, value = record_key(7, handle), _value(stored, bare, random)
    if value[0] != VERSION or random.random() >= checksums:
        return key, value
    of_key = columns.without_key() if keyless else columns
    return key, _with_checksums(of_key, key, stored, bare, random)


def _value(stored: Sequence[Field], bare: dict[int, Any], random: Random) -> bytes:
    if random.random() < 0.5:
        return join_row(
            {
                field.column.id: (Flag.NULL, None)
                if bare[field.column.id] is None
                else (field.storage.row_flag, bare[field.column.id])
                for field in stored
            }
        )
    return _row(stored, bare)


def _row(stored: Sequence[Field], bare: dict[int, Any], checksums: Sequence[int] = ()) -> bytes:
    cells, nulls = {}, []
    for field in stored:
        if (value := bare[field.column.id]) is None:
            nulls.append(field.column.id)
        else:
            cells[field.column.id] = field.storage.encode(value)
    return build_row(cells, nulls, checksums)


def _with_checksums(
    columns: Columns, key: bytes, stored: Sequence[Field], bare: dict[int, Any], random: Random
) -> bytes:
    """Return the row with checksums of any version, of which nine of ten are right."""
    version, wrong = random.choice((0, 0, 0, 1, 2, 3)), random.random() < 0.1
    if version:
        covered = _row(stored, bare, [0])[:-5] + bytes((version,))
        handle = random.random() < 0.5 or version > 1
        right = crc32(key[11:] if handle else key, crc32(covered))
        return covered + (right ^ wrong).to_bytes(4, "little")
    try:
        values = columns.key_values(key) | {field.column.id: bare[field.column.id] for field in stored}
        right = checksum_of(columns, values)
    except UNREADABLE:
        right = 0
    other = [random.randrange(1 << 32)] * (random.random() < 0.3)
    found = [*other, right ^ wrong] if random.random() < 0.5 else [right ^ wrong, *other]
    return _row(stored, bare, found)
