"""The decoders on rows that a MariaDB wrote."""

from __future__ import annotations

import pytest

from .vectors import Vector, as_printed, load, outcome

pytestmark = pytest.mark.usefixtures("decoder")

every_type = pytest.mark.parametrize("vector", load(), ids=lambda vector: vector.definition[:40])


@every_type
def test_a_row_of_the_binlog_has_the_values_that_the_source_prints(vector: Vector) -> None:
    changes = vector.from_binlog()
    column = changes[0].table.columns[1]
    assert len(changes) == len(vector.literals)
    for i, (change, printed) in enumerate(zip(changes, vector.printed, strict=True)):
        assert change.op == "insert"
        assert change.before is None
        assert change.after is not None
        number, value, minus = change.after
        assert (number, minus) == (i, -i)
        if isinstance(value, float):  # FLOAT is printed with six digits
            assert value == pytest.approx(float(printed), rel=1e-5 if column.kind == "float" else 0)
        elif "ZEROFILL" in vector.definition:
            assert value == int(printed)
        else:
            assert as_printed(column, value) == printed


@every_type
def test_a_row_of_the_snapshot_has_the_same_values(vector: Vector) -> None:
    binlog = [change.after for change in vector.from_binlog()]
    snapshot = [change.after for change in vector.from_snapshot()]
    # repr tells -0.0 from 0.0, Decimal("1.0") from Decimal("1") and 1 from True.
    assert repr(snapshot) == repr(binlog)


@every_type
def test_the_outcome_is_the_recorded_one(vector: Vector) -> None:
    assert outcome(vector) == vector.outcome
