"""Forms of keys that compare as the source compares the keys."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.events import Column, Table, float_form, float_of, key_order, space_padded, unpadded

TEXT = st.text(st.sampled_from("\t ab"), max_size=6)
_at = datetime.fromisoformat

RISING: list[tuple[Column, list[Any]]] = [
    (Column("k", "bigint"), [-(2**63), -1, 0, 2**63 - 1]),
    (
        Column("k", "decimal", length=40, scale=3),
        [Decimal(f"-{10**30}.5"), Decimal("-0.001"), Decimal(2)],
    ),
    (Column("k", "date"), ["0000-00-00", date(1, 1, 1), "2024-00-10", date(2024, 1, 1)]),
    (
        Column("k", "datetime", scale=3),
        [
            "0000-00-00 00:00:00.000",
            _at("0001-01-01 00:00:00"),
            "2024-00-10 00:00:00.500",
            _at("2024-01-01 00:00:01"),
        ],
    ),
    (
        Column("k", "timestamp"),
        ["0000-00-00 00:00:00", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)],
    ),
    (Column("k", "time", scale=2), [timedelta(hours=-30), timedelta(0), timedelta(microseconds=10_000)]),
    (Column("k", "double"), [-1.7976931348623157e308, -1.5, -5e-324, -0.0, 5e-324, 0.1, 1.0, 1e300]),
    (Column("k", "inet4"), ["0.0.0.0", "9.0.0.1", "10.0.0.1", "255.255.255.255"]),
    (Column("k", "inet6"), ["::", "::1", "::ffff:1.2.3.4", "a::", "fe80::1", "ffff::"]),
    (Column("k", "varchar", charset="utf8mb4", collation="utf8mb4_0900_bin"), ["a", "a ", "b"]),
    (Column("k", "varbinary"), [b"", b"\0", b"a", b"a\0", b"b", b"\xff"]),
    (
        Column("k", "varchar", charset="utf8mb4", collation="utf8mb4_bin"),
        ["a\t", "a", "aa", "\U0001f600"],
    ),
    (Column("k", "varchar", charset="utf8mb4", collation="utf8mb4_nopad_bin"), ["a", "a\t", "a ", "b"]),
    (Column("k", "char", charset="ascii", collation="ascii_general_ci"), ["A", "b", "C"]),
    (
        Column("k", "varchar", charset="utf8mb4", collation="utf8mb4_general_ci"),
        ["A\0a", "a\t", "ä", "ab", "Ab d", "ß", "T", "_", "日", "\uffee", "\U0001f600"],
    ),
    (
        Column("k", "varchar", charset="utf8mb4", collation="utf8mb4_general_nopad_ci"),
        ["A", "a\t", "ä ", "ab"],
    ),
    (
        Column("k", "varchar", charset="latin1", collation="latin1_swedish_ci"),
        ["a", "ab", "Y", "Å", "ä", "ö", "_", "€", "\x81", "ß"],
    ),
    (Column("k", "char", charset="latin1", collation="latin1_bin"), ["A", "a", "€", "\x81", "ß", "ä"]),
    (Column("k", "enum", members=("c", "", "a", "b")), ["0", "c", "", "a", "b"]),
]


@pytest.mark.parametrize(("column", "values"), RISING, ids=lambda value: getattr(value, "kind", ""))
def test_forms_rise_with_the_values(column: Column, values: list[Any]) -> None:
    order = key_order(Table("s", "t", (Column("n", "int"), column), (1, 0)))
    assert order is not None
    forms = [order((n, value)) for value in values for n in (1, 2)]
    assert forms == sorted(set(forms))


@pytest.mark.parametrize(
    "column",
    [
        Column("k", "varchar", charset="utf8mb4", collation="utf8mb4_0900_ai_ci"),
        Column("k", "varchar", charset="latin1", collation="latin1_german1_ci"),
        Column("k", "set", members=("a",)),
        Column("k", "uuid"),
    ],
    ids=lambda column: column.collation or column.kind,
)
def test_other_keys_have_no_order(column: Column) -> None:
    assert key_order(Table("s", "t", (column,), (0,))) is None
    assert key_order(Table("s", "t", (column,), ())) is None


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_read_from_its_form(value: float) -> None:
    assert float_of(float_form(value)) == value


def test_both_zeros_are_equal() -> None:
    assert float_form(-0.0) == float_form(0.0) == 0


@given(TEXT, TEXT)
def test_texts_compare_as_if_spaces_without_end_followed(one: str, other: str) -> None:
    assert (space_padded(one) < space_padded(other)) == (one.ljust(9) < other.ljust(9))
    assert (space_padded(one) == space_padded(other)) == (one.rstrip(" ") == other.rstrip(" "))


@given(TEXT)
def test_a_text_is_read_from_its_form(text: str) -> None:
    assert unpadded(space_padded(text)) == text.rstrip(" ")
