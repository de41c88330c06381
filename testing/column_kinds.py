"""A column of every kind, with the values at its ends."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from struct import pack, unpack
from typing import Any

from ..events import Column, Kind, Table

_TEXT: dict[str, Any] = {"charset": "utf8mb4", "collation": "utf8mb4_general_ci"}


def float32(value: float) -> float:
    (rounded,) = unpack("<f", pack("<f", value))
    return float(rounded)


def _integers(bits: int, *, unsigned: bool) -> list[int]:
    if unsigned:
        return [0, 1, 2 ** (bits - 1), 2**bits - 1]
    return [-(2 ** (bits - 1)), -1, 0, 2 ** (bits - 1) - 1]


_BITS: dict[Kind, int] = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_LONGEST = timedelta(hours=838, minutes=59, seconds=59)
_TRICKY = [
    "",
    "a'b",
    'a"b',
    "a\\",
    "\\'",
    "a\0b",
    "%s %(x)s {0}",
    "; DROP TABLE x; --",
    "äß€😀",
    " x",
    "\n\r\t\x1a",
]

EVERY: list[tuple[Column, list[Any]]] = [
    *[
        (Column(f"{kind}_{sign}", kind, sign == "unsigned"), _integers(bits, unsigned=sign == "unsigned"))
        for kind, bits in _BITS.items()
        for sign in ("signed", "unsigned")
    ],
    (
        Column("wide", "decimal", length=65, scale=30),
        [
            Decimal("9" * 35 + "." + "9" * 30),
            Decimal("-0." + "0" * 29 + "1"),
            Decimal("0.000000123456789012345678901234"),
            Decimal("0." + "0" * 30),
        ],
    ),
    (Column("whole", "decimal", True, 10, 0), [Decimal(0), Decimal(9_999_999_999)]),
    (Column("single", "float"), [0.0, float32(3.4028234663852886e38), float32(1.1), -float32(1.4e-45)]),
    (
        Column("double", "double"),
        [0.0, 1.7976931348623157e308, -1.7976931348623157e308, 2.2250738585072014e-308, 5e-324, 0.1, -1 / 3],
    ),
    (Column("flag", "bit", length=1), [0, 1]),
    (Column("bits", "bit", length=64), [0, 1, 2**63 - 1, 2**63, 2**64 - 1]),
    (Column("letters", "char", length=40, **_TEXT), _TRICKY),
    (Column("words", "varchar", length=200, **_TEXT), [*_TRICKY, "trailing  ", "x" * 200]),
    (Column("latin", "varchar", length=9, charset="latin1", collation="latin1_swedish_ci"), ["", "é'ÿ", "e"]),
    (Column("prose", "text", length=2, **_TEXT), [*_TRICKY, "trailing  ", "long " * 10_000]),
    (Column("fixed", "binary", length=4), [b"\0\0\0\0", b"a\0\0\0", b"\xff\xfe'\\"]),
    (Column("bytes", "varbinary", length=300), [b"", b"\0", bytes(range(256)), b"a ", b"a"]),
    (Column("lump", "blob", length=3), [b"", b"'\\\0", bytes(range(256)) * 1000]),
    (Column("day", "date"), [date(1, 1, 1), date(9999, 12, 31), "0000-00-00", "2024-02-31", "2024-00-10"]),
    *[
        (
            Column(f"time_{scale}", "time", scale=scale),
            [timedelta(), _LONGEST, -_LONGEST, -timedelta(microseconds=10 ** (6 - scale))],
        )
        for scale in (0, 3, 6)
    ],
    *[
        (
            Column(f"datetime_{scale}", "datetime", scale=scale),
            [
                datetime.fromisoformat("1000-01-01"),
                datetime.fromisoformat("9999-12-31 23:59:59" + (".999999"[: scale + 1] if scale else "")),
                "0000-00-00 00:00:00" + ("." + "0" * scale if scale else ""),
                "2024-00-10 01:02:03" + ("." + "0" * scale if scale else ""),
            ],
        )
        for scale in (0, 3, 6)
    ],
    *[
        (
            Column(f"timestamp_{scale}", "timestamp", scale=scale),
            [
                datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
                datetime(2038, 1, 19, 3, 14, 7, 999_999 if scale else 0, tzinfo=UTC),
                datetime(2024, 3, 31, 1, 30, tzinfo=UTC),
                "0000-00-00 00:00:00" + ("." + "0" * scale if scale else ""),
            ],
        )
        for scale in (0, 6)
    ],
    (Column("vintage", "year"), [0, 1901, 2155]),
    (Column("mood", "enum", members=("happy", "it's", "b\\c"), **_TEXT), ["happy", "it's", "b\\c"]),
    (Column("tags", "set", members=("a", "b'", "c"), **_TEXT), ["", "a", "a,b',c"]),
    (Column("name", "uuid"), [f"{0:08}-0000-0000-0000-{0:012}", "539bbeb9-3b11-164d-94fa-63d9fccb9825"]),
    (Column("four", "inet4"), ["0.0.0.0", "255.1.2.3"]),
    (Column("six", "inet6"), ["::", "10ff::f801:1060:60:1:ff10:144", "::ffff:1.2.3.4"]),
    (
        Column("place", "geometry"),
        [pack("<IBIdd", 0, 1, 1, 1.0, -2.5), pack("<IBIdd", 4326, 1, 1, 10.0, 20.0)],
    ),
    (Column("document", "json"), ["{}", '{"a": "it\'s \\"x\\" \\\\ é"}', "[1, 2.50, null]"]),
]  # fmt: skip

_ID = Column("id", "int", nullable=False)

KEYED = Table("shop", "everything", (_ID, *(column for column, _ in EVERY)), key=(0,))
KEYLESS = Table("shop", "everything_loose", KEYED.columns)

ROWS = [
    (number, *(values[number % len(values)] for _, values in EVERY))
    for number in range(max(len(values) for _, values in EVERY))
]
"""Each value of each column at least once."""
NULLS = (len(ROWS), *(None for _ in EVERY))
