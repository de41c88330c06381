"""Values of FLOAT(M,D) as text: a server that rounds the text to D digits stores exactly the value."""

from __future__ import annotations

import pytest

from tidemill.dialects.mysql.float_text import rounded_text
from tidemill.testing.column_kinds import float32


@pytest.mark.parametrize(
    ("value", "digits", "scale", "text"),
    [
        (float32(1.2346), 7, 4, "1.2345999479293823"),
        (float32(999.9999), 7, 4, "999.9998779296875"),
        (float32(-999.9999), 7, 4, "-999.9998779296875"),
        (float32(99999999.99), 10, 2, "99999999.99"),  # as FLOAT it is 100000000
        (float32(-99999999.99), 10, 2, "-99999999.99"),
        (0.0, 7, 0, "0.0"),
    ],
)
def test_a_float_of_its_digits(value: float, digits: int, scale: int, text: str) -> None:
    assert rounded_text(value, digits, scale, True) == text


@pytest.mark.parametrize(
    ("value", "digits", "scale"), [(1.25, 5, 2), (123456789.123, 20, 9), (1e10, 255, 30)]
)
def test_a_double_of_its_digits(value: float, digits: int, scale: int) -> None:
    assert rounded_text(value, digits, scale, False) == repr(value)


def test_a_value_that_no_statement_can_store_is_no_number() -> None:
    assert rounded_text(float32(1.2345), 7, 2, True) == (
        f"no FLOAT(7,2), round it in the source: {float32(1.2345)!r}"
    )
    assert rounded_text(1.255, 5, 2, False).startswith("no DOUBLE(5,2)")
    assert rounded_text(1e9, 7, 2, False).startswith("no DOUBLE(7,2)")
