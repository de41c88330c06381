"""Messages that native code joins from rows beside those made in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, timedelta
from decimal import Decimal
from random import Random
from sys import getrefcount
from typing import Any

import pytest

from tidemill.codec.native import library
from tidemill.codec.native.json_texts import powers_of_ten
from tidemill.codec.native.row_texts import RowValues, ValueWriter, output_number
from tidemill.events import Column, Op, Row, RowChange, Table
from tidemill.sink.encoding.encoder import NotEncodable
from tidemill.sink.encoding.encodings import make_encoder
from tidemill.sink.encoding.value_lines import HTML_STRINGS, JSON_STRINGS, integers, split

from .json_columns import ALPHABET, COLUMNS, Make

pytestmark = pytest.mark.skipif(library.native is None, reason="the native decoder isn't built")

ENCODINGS: dict[str, list[dict[str, object]]] = {
    "canal-json": [{}, {"enable-tidb-extension": True}, {"only-output-updated-columns": True}],
    "canal-protobuf": [{}],
    "open-protocol": [{}, {"only-output-updated-columns": True}, {"output-old-value": False}],
    "debezium": [{}, {"decimal-handling-mode": "string"}, {"output-old-value": False}],
    "maxwell": [{}, {"output-nulls": False}, {"output-primary-keys": True, "kafka-key-format": "array"}],
    "csv": [{}, {"quote": ""}, {"null": "", "output-old-value": True}],
    "simple": [{}, {"time-zone": "Asia/Kolkata"}],
}
_MEMBERS = {"enum": ("a", "b c", "größe"), "set": ("x", "y", "z")}
_OPS: tuple[Op, ...] = ("insert", "update", "delete")
_RARE: dict[str, tuple[Any, ...]] = {
    "date": ("0000-00-00",),
    "datetime": ("0000-00-00 00:00:00",),
    "timestamp": ("0000-00-00 00:00:00",),
    "time": (timedelta(days=100_000), timedelta(microseconds=-1)),
    "decimal": (Decimal("1E+3"), Decimal("-1.5"), Decimal("1E-9"), Decimal(7)),
    "varchar": ("<b>&amp;</b>", "\u2028\u2029", "€\b\f\v\0", "\x7f" * 9, "a" * 1022 + "\u2028\u2029€"),
}
"""Values that aren't regular, or have escapes."""


def _column(random: Random, number: int) -> tuple[Column, Make]:
    column, _, make = random.choice(COLUMNS)
    members = _MEMBERS.get(column.kind, ())
    kind = column.kind
    if kind == "enum":
        make = lambda random: random.choice(members)  # noqa: E731
    elif kind == "set":
        make = lambda random: ",".join(one for one in members if random.random() < 0.5)  # noqa: E731
    elif kind == "json":
        make = lambda random: random.choice(('{"a": 1}', "[]", "null", '"<&>"'))  # noqa: E731
    elif kind == "vector":
        make = lambda random: random.randbytes(4)  # noqa: E731
    zone = (lambda value: value.replace(tzinfo=UTC)) if kind == "timestamp" else (lambda value: value)
    rare = _RARE.get(kind, ())

    def value(random: Random) -> Any:
        if random.random() < 0.1:
            return None
        if rare and random.random() < 0.1:
            return random.choice(rare)
        return zone(make(random))

    return Column(f"c{number}", kind, members=members, scale=column.scale, length=column.length,
                  unsigned=column.unsigned), value  # fmt: skip


def _changes(random: Random) -> list[RowChange]:
    makes = [_column(random, number) for number in range(random.randint(0, 6))]
    columns = (Column("id", "int", nullable=False), *[column for column, _ in makes])
    table = Table("s", "t", columns, key=(0,) if random.random() < 0.8 else ())

    def row() -> Row:
        return (random.choice((0, -1, 2**31 - 1)), *[value(random) for _, value in makes])

    changes = []
    for _ in range(random.randint(1, 12)):
        op = random.choice(_OPS)
        before, after = None if op == "insert" else row(), None if op == "delete" else row()
        if before is not None and after is not None and random.random() < 0.5:
            after = before[:2] + after[2:]
        changes.append(RowChange(random.choice((1, 2)) << 18, 5, table, op, before, after))
    return changes


def _outcome(name: str, options: dict[str, object], changes: list[RowChange]) -> object:
    try:
        return make_encoder(name, options, lambda: 7).rows(changes)
    except NotEncodable as error:  # of several values, row by row and column by column find another first
        return error.encoding, error.table
    except (OverflowError, ValueError) as error:
        return type(error), str(error)


def compare(seed: int) -> int:
    """Compare the messages of all encodings; return the number of encodings that have such a table."""
    random, readable = Random(seed), 0
    changes = _changes(random)
    for name, listed in ENCODINGS.items():
        options = random.choice(listed)
        messages = []
        for in_use in (False, True):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(library, "in_use", in_use)
                messages.append(_outcome(name, options, changes))
        assert messages[0] == messages[1], (seed, name, options)
        readable += isinstance(messages[0], list)
    _damaged(random)
    return readable


def _damaged(random: Random) -> None:
    """Join parts that don't fit, which must be refused or joined anyhow."""
    rows: list[Any] = [(random.choice((1, "ä", b"b", 1.5, None, 2**70, ["list"])),) for _ in range(3)]
    if random.random() < 0.3:
        rows[1] = random.choice(((), [1], None, b"row"))
    writer: Any = (
        random.choice((*range(-1, 16), 2**31 - 1)),
        random.choice((0, 1, 6, 7, 38, 64, 65, -1)),
        random.random() < 0.5,
        random.random() < 0.5,
        random.choice((None, {1: 2, "ä": "b"}, 5)),
        *random.choice(((b"", b"<" * 2000, b"null"), ("", b"", b""))),
        random.choice(
            (None, lambda values: [b"other"], lambda values: b"o", lambda values: rows.clear() or [b""])
        ),
    )
    part: Any = (rows, random.choice((0, 0, 0, 1, -1, 2**62)), writer[: random.choice((9, 9, 9, 8))])
    parts = (b"constant", random.choice((part, None, [b"a", b"b"], [b"a", 1, b"c"])), [b"x", b"y", b"z"])
    powers = powers_of_ten() if random.random() < 0.9 else b"1"
    try:
        library.native.row_texts(random.choice((3, 3, 0, -1)), parts, powers)
    except (KeyError, OverflowError, TypeError, ValueError):
        return


def test_random_rows_have_the_same_messages_by_both():
    assert sum(map(compare, range(400))) > 1_500


@pytest.mark.soak
def test_random_rows_have_the_same_messages_by_both_for_many_seeds():
    assert sum(map(compare, range(1_000, 20_000))) > 50_000


def _native(*parts: Any, count: int = 1) -> list[bytes]:
    return library.native.row_texts(count, parts, powers_of_ten())


def test_parts_are_joined_row_by_row():
    values = RowValues([(1, None), (-22, 5)], 0, split(integers))  # type: ignore[arg-type]
    others = values._replace(place=1)
    assert _native(b"<", values, b"|", others, [b"x", b"y"], b">", count=2) == [b"<1|nullx>", b"<-22|5y>"]
    assert _native(count=2) == [b"", b""]
    assert _native(b"a", count=0) == []


@pytest.mark.parametrize(
    ("writer", "text", "json"),
    [
        (JSON_STRINGS, "a\"\\\t\b\f\x01\x7f<\u2028", b'"a\\"\\\\\\t\\u0008\\u000c\\u0001\x7f<\xe2\x80\xa8"'),
        (HTML_STRINGS, "<>&\u2028\u2029\u2030", b'"\\u003c\\u003e\\u0026\\u2028\\u2029\xe2\x80\xb0"'),
        (HTML_STRINGS, b"\xff<", b'"/zw="'),
        (HTML_STRINGS, ALPHABET * 50, None),
    ],
)  # fmt: skip
def test_strings_are_escaped_as_in_python(writer: ValueWriter, text: object, json: bytes | None):
    (found,) = _native(RowValues([(text,)], 0, writer))
    assert found == writer([text])[0]
    assert json is None or found == json


def test_what_is_not_regular_is_written_by_the_function():
    seen: list[object] = []

    def write(values: Iterable[object]) -> list[bytes]:
        seen.extend(values)
        return [b"other"]

    writer = ValueWriter(output_number("INT"), 0, False, False, None, b"(", b")", b"-", write)  # type: ignore[arg-type]
    rows: list[Row] = [(1,), (None,), (2**64,), (True,), ("text",)]
    assert _native(b"", RowValues(rows, 0, writer), count=5) == [b"(1)", b"-", b"other", b"other", b"other"]
    assert seen == [2**64, True, "text"]


def _raises(values: Iterable[object]) -> list[bytes]:
    raise NotEncodable("e", "t", "c", "because")


@pytest.mark.parametrize(
    ("write", "error"),
    [(_raises, NotEncodable), (lambda values: b"text", TypeError), (lambda values: [b"a", b"b"], TypeError)],
)
def test_errors_of_the_function_end_the_call(write: Callable[..., Any], error: type[Exception]):
    writer = ValueWriter(output_number("INT"), 0, False, False, None, b"", b"", b"", write)
    with pytest.raises(error):
        _native(RowValues([("x",)], 0, writer))


def test_nothing_is_kept_of_rows_and_parts():
    values = ("text" * 100, 2**70, 1.5)
    rows = [values] * 100
    parts = [RowValues(rows, place, JSON_STRINGS) for place in (0, 2)]
    before = getrefcount(values), getrefcount(rows), getrefcount(values[0])
    for _ in range(20):
        _native(b"a", *parts, count=100)
        with pytest.raises(TypeError):
            _native(*parts, [1], count=100)
    assert (getrefcount(values), getrefcount(rows), getrefcount(values[0])) == before


@pytest.mark.parametrize(
    "parts",
    [
        (None,),
        ([b"a"],),
        (RowValues([(1,)], 0, JSON_STRINGS),),
        ((1, 2),),
        (RowValues([()], 0, JSON_STRINGS),),
    ],
)  # fmt: skip
def test_parts_that_lack_rows_or_values_are_refused(parts: Any):
    with pytest.raises((TypeError, ValueError)):
        _native(*parts, count=2)
