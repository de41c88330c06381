"""Rows for the shop's tables: extreme and ordinary values of every column type."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal

from ..events import Row

SETS = tuple(f"s{i:02d}" for i in range(64))
ENUMS = ("small", "medium", "large", "it's", 'a "quoted" one', "größe")


def _integers(bits: int, unsigned: bool) -> Callable[[random.Random], int]:
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return lambda rng: rng.choice([low, high, 0, 1, rng.randint(low, high)])


def _decimals(digits: int, scale: int, unsigned: bool = False) -> Callable[[random.Random], Decimal]:
    top = 10**digits - 1
    return lambda rng: Decimal(
        rng.choice([top, 0, 1, rng.randint(0, top)] + ([] if unsigned else [-top, -1, -rng.randint(0, top)]))
    ).scaleb(-scale, context=_WIDE)


def _texts(length: int, alphabet: str) -> Callable[[random.Random], str]:
    return lambda rng: "".join(
        rng.choices(alphabet, k=rng.choice([0, 1, rng.randint(0, min(length, 60)), min(length, 400)]))
    )


def _bytes(length: int) -> Callable[[random.Random], bytes]:
    return lambda rng: (
        rng.randbytes(rng.choice([0, 1, rng.randint(0, min(length, 80)), min(length, 600)]))
        + (b"\0\0" if length > 2 and rng.random() < 0.2 else b"")
    )


def _times(scale: int) -> Callable[[random.Random], str]:
    def make(rng: random.Random) -> str:
        seconds = rng.choice([0, 838 * 3600 + 3599, rng.randrange(838 * 3600)])
        fraction = 0 if seconds == 838 * 3600 + 3599 else rng.randrange(10**scale)
        sign = "-" if rng.random() < 0.4 else ""
        return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}" + _fraction(
            fraction, scale
        )

    return make


def _fraction(value: int, scale: int) -> str:
    return f".{value:0{scale}d}" if scale else ""


def _datetimes(scale: int, first: datetime, last: datetime) -> Callable[[random.Random], str]:
    def make(rng: random.Random) -> str:
        span = int((last - first).total_seconds())
        moment = first + timedelta(seconds=rng.choice([0, span, rng.randrange(span)]))
        return f"{moment:%Y-%m-%d %H:%M:%S}".rjust(19, "0") + _fraction(rng.randrange(10**scale), scale)

    return make


def _json(rng: random.Random) -> str:
    return json.dumps({"n": rng.randint(-(10**12), 10**12), "s": _WIDE_TEXT(rng), "l": [None, True, 1.5]})


_WIDE = Context(prec=80)
_ASCII = string.ascii_letters + string.digits + " '\"\\%_\t\n;`"
_WIDE_TEXT = _texts(80, _ASCII + "äöüß€日本語😀\0")

VALUES: dict[str, Callable[[random.Random], object]] = {
    **{
        f"{c}{u}": _integers(bits, u == "u") for c, bits in zip("tsm", (8, 16, 24), strict=True) for u in "iu"
    },
    "ii": _integers(32, False),
    "iu": _integers(32, True),
    "bi": _integers(64, False),
    "bu": _integers(64, True),
    "de": _decimals(65, 30),
    "du": _decimals(12, 2, unsigned=True),
    "dn": _decimals(20, 0),
    "fl": lambda rng: rng.choice([0.0, -0.5, 0.1, 3.4028234e38, 1.17549435e-38, rng.uniform(-1e6, 1e6)]),
    "db": lambda rng: rng.choice(
        [0.0, 0.1, 1.7976931348623157e308, 2.2250738585072014e-308, rng.gauss(0, 1e9)]
    ),
    "bt": _integers(64, True),
    "b1": _integers(1, True),
    "b9": _integers(9, True),
    "ch": _texts(10, _ASCII.strip() + "é😀"),
    "vc": _texts(300, _ASCII + "äöüß€日本語😀"),
    "vl": _texts(200, _ASCII + "äöüß€\x81"),
    "tt": _texts(60, _ASCII),
    "tx": _WIDE_TEXT,
    "mt": _WIDE_TEXT,
    "lt": _texts(2000, _ASCII),
    "bn": _bytes(14),
    "vb": _bytes(290),
    "tb": _bytes(200),
    "bl": _bytes(2000),
    "mb": _bytes(2000),
    "lb": _bytes(2000),
    "da": lambda rng: str(rng.choice([date(1000, 1, 1), date(9999, 12, 31), date(2024, 2, 29)])),
    "tm": _times(0),
    "t3": _times(3),
    "t6": _times(6),
    "dt": _datetimes(0, datetime(1000, 1, 1), datetime(9999, 12, 31, 23, 59, 59)),  # noqa: DTZ001
    "d1": _datetimes(1, datetime(1000, 1, 1), datetime(9999, 12, 31, 23, 59, 58)),  # noqa: DTZ001
    "d6": _datetimes(6, datetime(1000, 1, 1), datetime(9999, 12, 31, 23, 59, 58)),  # noqa: DTZ001
    "ts": _datetimes(
        0, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), datetime(2038, 1, 19, 3, 14, 6, tzinfo=UTC)
    ),
    "ts4": _datetimes(
        4, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), datetime(2038, 1, 19, 3, 14, 6, tzinfo=UTC)
    ),
    "ts6": _datetimes(
        6, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), datetime(2038, 1, 19, 3, 14, 6, tzinfo=UTC)
    ),
    "yr": lambda rng: rng.choice([1901, 2155, 2000, 0]),
    "en": lambda rng: rng.choice(ENUMS),
    "st": lambda rng: ",".join(s for s in SETS if rng.random() < rng.choice([0, 0.1, 1])),
    "js": _json,
}
"""Values of each column of every_type: extreme and ordinary ones."""


def every_type(rng: random.Random, key: int) -> Row:
    return (key, *(None if rng.random() < 0.1 else make(rng) for make in VALUES.values()))


def customer(rng: random.Random, key: int) -> Row:
    name = "".join(rng.choices(string.ascii_letters + "äé ", k=12))
    return (key, name, f"{key}@example.org", Decimal(rng.randrange(10**6)) / 100, "2024-05-06 07:08:09", None)


def order(rng: random.Random, key: int, customers: int) -> Row:
    return (
        key,
        rng.randint(1, customers),
        Decimal(rng.randrange(10**7)) / 100,
        rng.choice(["open", "paid", "sent", "closed"]),
        "2026-01-02 03:04:05.678",
        None,
    )


def line(rng: random.Random, order_id: int, number: int) -> Row:
    return (order_id, number, f"sku-{rng.randrange(500):05d}", rng.randint(1, 9), Decimal("9.99"))


def log_entry(rng: random.Random) -> Row:
    # Few distinct rows on purpose: without a key, equal rows must be counted correctly.
    who = rng.choice(["ann", "Ann", "ann ", "bob", None])
    return (
        f"2026-01-01 00:00:0{rng.randrange(3)}.5",
        who,
        rng.choice(["in", "out"]),
        0.1,
        rng.choice([b"\0", b""]),
    )
