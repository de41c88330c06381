"""Recorded logs are read to exactly the recorded values."""

from __future__ import annotations

import pytest

from tidemill.codec.mysql.rows import RowsDecoder
from tidemill.errors import SourceError
from tidemill.events import Row, RowChange

from .printing import agrees
from .recorded import Expected, Reader, Recorded, load

pytestmark = pytest.mark.usefixtures("decoder")

LOGS = load()


def compared(row: Expected, change: RowChange, *, present_only: bool = False) -> int:
    """Compare a row's images with what was printed, and return the number of values."""
    assert (row.table, row.op) == (change.table.name, change.op)
    assert [c["name"] for c in row.columns] == [c.name for c in change.table.columns]
    images = (("before", change.before), ("after", change.after))
    return sum(image(row, when, change, values, present_only) for when, values in images)


def image(row: Expected, when: str, change: RowChange, values: Row | None, present_only: bool) -> int:
    if values is None:
        return 0
    if row.image(when) is None:  # a state inside a CALL, which no SELECT could see
        assert "unseen" in row.line
        return 0
    present = row.present(when) if present_only else None
    pairs = [
        (column, value)
        for column, value in zip(change.table.columns, values, strict=True)
        if present is None or column.name in present
    ]
    wrong = [(column.name, value) for column, value in pairs if not agrees(row, when, column, value)]
    assert not wrong
    return len(pairs)


@pytest.mark.parametrize("log", [log for log in LOGS if log.has_whole_rows], ids=str)
def test_a_recorded_log_is_read_to_the_values_that_its_server_printed(log: Recorded) -> None:
    check(log)


@pytest.mark.parametrize("log", [log for log in LOGS if not log.has_whole_rows], ids=str)
def test_rows_that_lack_columns_are_refused(log: Recorded) -> None:
    with pytest.raises(SourceError, match=r"table dba\.\w+: the binlog holds \w+s without column \w+: "):
        Reader(log).changes()


@pytest.mark.parametrize(
    "log", [log for log in LOGS if not log.has_whole_rows and "partial_json" not in log.name], ids=str
)
def test_the_columns_that_are_there_have_the_printed_values(
    log: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The missing ones are left open here, which no feed does."""
    monkeypatch.setattr(RowsDecoder, "_require", lambda *_: None)
    check(log)


def test_generated_columns_that_the_server_leaves_out_are_refused() -> None:
    log = Recorded("mariadb-11.8.9", "misc", followed=("gen",))
    with pytest.raises(SourceError, match=r"table dba\.gen: .* without column v, which the server computes"):
        Reader(log).changes()


def check(log: Recorded) -> None:
    changes = Reader(log).changes()
    assert len(changes) == len(log.expected)
    pairs = zip(log.expected, changes, strict=True)
    assert sum(compared(*pair, present_only=not log.has_whole_rows) for pair in pairs)
