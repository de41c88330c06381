"""Events that are counted and decoded together give what each gives by itself."""

from __future__ import annotations

import pytest

from tidemill.errors import SourceError
from tidemill.testing.binlog_events import DELETE, INSERT, INT, UPDATE, rows_event, table_map

from .test_rows import layout_of
from .vectors import load

OPS = {23: "insert", 25: "delete"}


@pytest.mark.usefixtures("decoder")
def test_rows_of_every_type():
    for vector in load():
        layout = layout_of(vector.table_map)
        events = [event[:4] + bytes((op,)) + event[5:] for event in vector.events for op in OPS]
        for _ in range(2):  # at first no reader of an operation is there
            block = layout.block()
            runs = [block.add(event, ts, ts + 1) for ts, event in enumerate(events)]
            assert [len(run) for run in runs] == [len(layout.decode_rows(event, 0, 0)) for event in events]
            for ts, (run, event) in enumerate(zip(runs, events, strict=True)):
                assert run.changes() == layout.decode_rows(event, ts, ts + 1)
                assert run.op == run.changes()[0].op


def image(number: int) -> bytes:
    return number.to_bytes(4, "little")


@pytest.mark.usefixtures("decoder")
def test_updates_have_two_images_a_change():
    block = layout_of(table_map(INT)).block()
    event = rows_event(UPDATE, [[image(1)], [image(2)], [image(3)], [image(4)]])
    for run in (block.add(event, 5, 5), block.add(event, 6, 6)):
        assert len(run) == 2
        assert [(change.before, change.after) for change in run.changes()] == [((1,), (2,)), ((3,), (4,))]


@pytest.mark.usefixtures("decoder")
@pytest.mark.parametrize("ask", [len, lambda run: run.changes()], ids=["count", "rows"])
@pytest.mark.parametrize("cut", [1, 5, 6])
def test_a_damaged_event_is_named_and_the_others_are_read(ask, cut):
    layout = layout_of(table_map(INT))
    whole = rows_event(INSERT, [[image(7)], [image(8)]])
    for _ in range(2):
        block = layout.block()
        before, damaged, after = (
            block.add(event, ts, ts)
            for ts, event in enumerate((whole, whole[:-cut], rows_event(DELETE, [[image(9)]])), 100)
        )
        with pytest.raises(SourceError, match=r"table shop\.t: .* its transaction has ts 101"):
            ask(damaged)
        assert [change.after for change in before.changes()] == [(7,), (8,)]
        assert (len(after), after.changes()[0].before) == (1, (9,))


def test_what_is_no_rows_event_is_refused():
    block = layout_of(table_map(INT)).block()
    with pytest.raises(SourceError, match=r"table shop\.t: "):
        block.add(b"\0" * 40, 1, 1)
