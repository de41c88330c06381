"""The native writer of times as text beside the one in Python."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from tidemill.codec.native import library
from tidemill.codec.native.time_texts import time_texts
from tidemill.sink.arrow_text import as_text_by_python

pytestmark = pytest.mark.skipif(library.native is None, reason="the native decoder isn't built")

DAY = 86_400_000_000
DAYS = (-719_162, 2_932_896)
"""0001-01-01 and 9999-12-31."""
MOMENTS = (DAYS[0] * DAY, (DAYS[1] + 1) * DAY - 1)
DURATIONS = (-3_020_399_999_999, 3_020_399_999_999)
"""-838:59:59.999999 and its opposite."""
LEAST = (-(2**63)).to_bytes(8, "little", signed=True)
RANGES = {
    pa.date32(): DAYS,
    pa.timestamp("us"): MOMENTS,
    pa.timestamp("us", "UTC"): MOMENTS,
    pa.duration("us"): DURATIONS,
}


def _random_times(random: Random, type_: pa.DataType, scale: int) -> pa.Array:
    least, most = RANGES[type_]
    unit = 1 if type_ == pa.date32() else 10 ** (6 - scale)
    least, most = -(-least // unit), most // unit

    def number() -> int | None:
        found = random.choice([None, random.randint(least, most), least, most, *range(-2, 3)])
        return None if found is None else found * unit

    numbers = [number() for _ in range(random.randint(0, 40))]
    whole = pa.array(numbers, pa.int32() if type_ == pa.date32() else pa.int64()).cast(type_)
    return whole[random.randint(0, 3) :] if random.random() < 0.5 else whole


def compare(seed: int) -> int:
    """Compare the writers; return the number of texts."""
    random, count = Random(seed), 0
    for type_ in RANGES:
        scale = random.randint(0, 6)
        values = _random_times(random, type_, scale)
        native = time_texts(values, scale)
        native.validate(full=True)
        assert native.equals(as_text_by_python(values, scale)), (seed, type_, scale)
        count += len(native)
    _damaged(random)
    return count


def _damaged(random: Random) -> None:
    """Write with buffers that are too small or have other bytes, which must be refused or written anyhow."""
    rows = random.randint(0, 20)
    given = [
        random.choice((library.native.AS_DATE, library.native.AS_DATETIME, library.native.AS_DURATION, -1)),
        random.choice((4, 8, 0, 2**31 - 1)),
        random.choice((0, 6, 7, -1)),
        random.choice((rows, -1, 2**63 - 1)),
        random.choice((None, b"", random.randbytes(rows // 8 + 1))),
        random.choice((random.randbytes(random.choice((8 * rows, 4 * rows, 3))), rows * LEAST)),
    ]
    try:
        library.native.time_texts(*given)
    except ValueError:
        return


def test_random_times_have_the_same_texts_by_both_writers():
    assert sum(map(compare, range(300))) > 10_000


@pytest.mark.soak
def test_random_times_have_the_same_texts_by_both_writers_for_many_seeds():
    assert sum(map(compare, range(1_000, 20_000))) > 500_000


@pytest.mark.parametrize("type_", RANGES)
def test_the_first_and_the_last_value_have_all_their_digits(type_):
    values = pa.array(RANGES[type_], pa.int32() if type_ == pa.date32() else pa.int64()).cast(type_)
    texts = time_texts(values, 6).to_pylist()
    assert texts == {
        "date32[day]": ["0001-01-01", "9999-12-31"],
        "duration[us]": ["-838:59:59.999999", "838:59:59.999999"],
    }.get(str(type_), ["0001-01-01 00:00:00.000000", "9999-12-31 23:59:59.999999"])


def test_a_date_that_the_calendar_does_not_have_is_refused():
    with pytest.raises(ValueError, match="calendar"):
        time_texts(pa.array([DAYS[1] + 1], pa.int32()).cast(pa.date32()), 0)


def test_damaged_buffers_are_refused():
    native = library.native
    for rows, validity, values in ((2, None, b"x" * 15), (9, b"x", b"x" * 72), (-1, None, b"")):
        with pytest.raises(ValueError, match="buffers"):
            native.time_texts(native.AS_DATETIME, 8, 0, rows, validity, values)
