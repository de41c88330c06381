"""Arrays made without `pa.array`, beside those that it makes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.codec.arrow_arrays import bool_array, counted, int64_array, int64_values, repeated

NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1)
VALUES = [
    (pa.int64(), NUMBERS),
    (pa.bool_(), st.booleans()),
    (pa.string(), st.none() | st.text(st.characters(codec="utf-8"), max_size=5)),
    (pa.binary(), st.none() | st.binary(max_size=5)),
]


@given(st.lists(st.tuples(NUMBERS, st.booleans()), max_size=20))
def test_numbers_are_those_of_pyarrow(pairs: list[tuple[int, bool]]) -> None:
    numbers, absent = [number for number, _ in pairs], np.array([flag for _, flag in pairs], np.bool_)
    found = int64_array(numbers)
    found.validate(full=True)
    assert found.equals(pa.array(numbers, pa.int64()))
    assert int64_array(numbers, absent).equals(pa.array(numbers, pa.int64(), mask=absent))
    assert bool_array(absent).equals(pa.array(absent.tolist(), pa.bool_()))
    assert int64_values(found[2:7]).tolist() == numbers[2:7]
    assert int64_array(numbers, kind=pa.timestamp("us")).equals(found.cast(pa.timestamp("us")))


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=str)
@given(st.data())
def test_values_are_repeated_as_often_as_their_sizes(
    kind: pa.DataType, values: st.SearchStrategy[object], data: st.DataObject
) -> None:
    pairs = data.draw(st.lists(st.tuples(values, st.integers(0, 3)), min_size=1, max_size=9))
    found = repeated([value for value, _ in pairs], [size for _, size in pairs], kind)
    found.validate(full=True)
    assert found.equals(pa.array([value for value, size in pairs for _ in range(size)], kind))


def test_a_value_is_repeated_only_as_often_as_an_array_holds_it() -> None:
    assert repeated([b""], [np.int64(3)], pa.binary()).to_pylist() == [b""] * 3
    with pytest.raises(pa.ArrowCapacityError, match="2 values of 1073741824 bytes"):
        repeated([bytes(1 << 30)], [2], pa.binary())


def test_numbers_ascend_from_each_first_one() -> None:
    assert counted([7, 0], [2, 3]).to_pylist() == [7, 8, 0, 1, 2]
