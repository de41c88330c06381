"""Captures that are dead, slow, short or wrong: the reader gets every row once all the same."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Event

import pyarrow as pa
import pytest
from pyarrow import flight

from tidemill.errors import InvariantViolated
from tidemill.spark.capture import client
from tidemill.spark.capture.access import Access
from tidemill.spark.capture.client import CaptureUnavailable
from tidemill.spark.capture.ticket import End
from tidemill.spark.capture.ticket import write as to_json
from tidemill.spark.capture.watch import StepTimeout
from tidemill.spark.envelope import ENVELOPE, EnvelopeEncoder
from tidemill.spark.offsets.offset import Offset

from .history import BASE, Keeping, expected, history, offset, rows_of
from .served import Scripted, served, serving, ticket

COUNT = 30
ITEMS = history(21, COUNT)
WHOLE = EnvelopeEncoder(json=False).encode(ITEMS)
EVERY = WHOLE.to_pylist()
ASKED = ticket(0, COUNT)
END = to_json(End(WHOLE.num_rows, ASKED.end))
NOBODY = "127.0.0.1:1"
"""Address at which nothing listens."""


class Stateless:
    """The source without a capture; records the requests."""

    def __init__(self) -> None:
        self.asked: list[Offset] = []

    def __call__(self, start: Offset) -> list[pa.RecordBatch]:
        self.asked.append(start)
        batch = EnvelopeEncoder(json=False).encode([item for item in ITEMS if item.commit_ts > start.ts])
        return [batch.slice(first, 4) for first in range(0, batch.num_rows, 4)]


def halves(at: int) -> list[pa.RecordBatch]:
    return [WHOLE.slice(0, at), WHOLE.slice(at)]


def test_a_script_that_sends_all_is_enough():
    with serving(Scripted(*halves(9), END)) as address:
        assert rows_of(client.read([address], ASKED, json=False)) == EVERY


FAILURES = {
    "ends without its end": [*halves(9)],
    "is of a shorter range": [WHOLE.slice(0, 9), to_json(End(9, offset(3)))],
    "has all, and says that it is of another range": [*halves(9), to_json(End(WHOLE.num_rows, ASKED.start))],
    "begins out of order": [pa.concat_batches([WHOLE.slice(9), WHOLE.slice(0, 9)]), END],
    "begins too early": [pa.concat_batches([EnvelopeEncoder(json=False).encode([]), WHOLE]), END],
    "breaks off": [WHOLE.slice(0, 9), flight.FlightUnavailableError("the capture has ended")],
    "refuses": [flight.FlightServerError("this capture follows another source")],
    "has a bug": [WHOLE.slice(0, 9), ValueError("a bug")],
    "is of another version": [WHOLE.drop_columns(["layout"]), END],
    "speaks nonsense": [*halves(9), b"what"],
    "says nothing": [],
}


@pytest.mark.parametrize("script", FAILURES.values(), ids=FAILURES)
def test_whatever_a_capture_does_the_rows_are_the_same(script):
    rest, asked = Stateless(), ASKED
    if script is FAILURES["begins too early"]:
        asked = ticket(4, COUNT)
    with serving(Scripted(*script)) as address:
        found = rows_of(client.read([address], asked, rest, json=False))
    assert found == [row for row in EVERY if row["commit_ts"] > asked.start.ts]
    assert len(rest.asked) == 1


@pytest.mark.parametrize("script", FAILURES.values(), ids=FAILURES)
def test_and_without_another_way_it_says_why(script):
    asked = ticket(4, COUNT) if script is FAILURES["begins too early"] else ASKED
    with serving(Scripted(*script)) as address, pytest.raises(CaptureUnavailable, match=f"^{address}: "):
        list(client.read([address], asked, json=False))


@pytest.mark.parametrize(
    "script",
    [
        [*halves(9), to_json(End(WHOLE.num_rows + 1, ASKED.end))],
        [WHOLE.slice(0, 9), END],
        [WHOLE.slice(0, 9), *halves(9), END],
        [WHOLE.slice(9), WHOLE.slice(0, 9), END],
    ],
    ids=["another count", "rows are missing", "rows come twice", "the rows' order is wrong"],
)
def test_an_answer_that_is_wrong_is_an_error_once_rows_were_handed_on(script):
    """The task fails, and Spark repeats it from its start: continuing would lose what is missing."""
    with serving(Scripted(*script)) as address, pytest.raises(InvariantViolated, match="a wrong answer"):
        list(client.read([address], ASKED, Stateless(), json=False))


@pytest.mark.parametrize("at", range(WHOLE.num_rows + 1))
def test_wherever_it_breaks_off_the_next_goes_on(tmp_path, at):
    """The next capture has the whole range, and is asked only for the missing part."""
    keeping = Keeping(tmp_path)
    keeping.take(ITEMS)
    broken = Scripted(WHOLE.slice(0, at), flight.FlightUnavailableError("gone"))
    with serving(broken) as first, served(keeping) as second:
        found = rows_of(client.read([NOBODY, first, second], ASKED, json=False))
    assert found == expected(ITEMS, 0, COUNT)


def test_one_after_the_other_breaks_off_and_the_source_itself_goes_on():
    rest = Stateless()
    with serving(Scripted(WHOLE.slice(0, 9))) as first, serving(Scripted()) as second:
        found = rows_of(client.read([first, second, NOBODY], ASKED, rest, json=False))
    assert found == EVERY
    (start,) = rest.asked
    assert start.ts < WHOLE.column("commit_ts")[8].as_py()
    assert start.ts > BASE


def test_a_capture_that_hangs_is_left():
    rest, over = Stateless(), Event()
    server = Scripted(WHOLE.slice(0, 9), over.wait, WHOLE.slice(9), END)
    with serving(server) as address:
        found = rows_of(client.read([address], ASKED, rest, json=False, silent_seconds=0.1))
        over.set()
    assert found == EVERY
    assert len(rest.asked) == 1


class Hanging(Scripted):
    """Answers the first call, and hangs before it begins to answer the second one, until `released`."""

    def __init__(self) -> None:
        super().__init__()
        self.released = Event()

    def do_get(self, _context, _asked):
        self.released.wait()
        return flight.GeneratorStream(ENVELOPE, iter(()))


def test_a_capture_that_hangs_before_its_answer_begins_is_left():
    rest, capture = Stateless(), Hanging()
    with serving(capture) as address:
        found = rows_of(client.read([address], ASKED, rest, json=False, silent_seconds=0.1))
        capture.released.set()
    assert found == EVERY
    assert rest.asked == [ASKED.start]


def test_a_capture_that_hangs_is_named():
    over = Event()
    with serving(Scripted(over.wait, WHOLE, END)) as address:
        with pytest.raises(CaptureUnavailable, match=r"sent nothing for 0\.1 s"):
            list(client.read([address], ASKED, json=False, silent_seconds=0.1))
        over.set()


def test_a_slow_reader_is_not_a_slow_capture(monkeypatch):
    steps = []

    class Noted(StepTimeout):
        @contextmanager
        def step(self, seconds):
            with super().step(seconds):
                steps.append(seconds)
                yield
                steps.pop()

    monkeypatch.setattr(client, "StepTimeout", Noted)
    with serving(Scripted(*halves(9), END)) as address:
        found = []
        for batch in client.read([address], ASKED, json=False):
            assert not steps, "while the reader has the batch"
            found.append(batch)
    assert rows_of(found) == EVERY
    assert len(found) == 2


def test_nobody_there_is_said_for_each():
    with pytest.raises(CaptureUnavailable) as none:
        list(client.read([NOBODY, "nonsense"], ASKED))
    assert "127.0.0.1:1: " in str(none.value)
    assert "nonsense: a capture's address is host:port" in str(none.value)
    with pytest.raises(CaptureUnavailable, match="no capture is named"):
        list(client.read([], ASKED))
    (failure,) = client.acknowledge([NOBODY], "query", ASKED.end)
    assert failure.startswith("127.0.0.1:1: ")


def test_an_empty_range_asks_nobody():
    assert list(client.read([NOBODY], ticket(3, 3))) == []


def test_a_reader_may_stop_early():
    server = Scripted(*halves(9), END)
    with serving(server) as address:
        found = client.read([address], ASKED, json=False)
        assert next(found).num_rows == 9
        found.close()
    assert len(server.asked) == 1


def test_a_source_that_gives_other_rows_is_an_error_not_an_answer():
    wrong = [EnvelopeEncoder(json=False).encode(history(22, COUNT))]
    with serving(Scripted(WHOLE.slice(0, 9))) as address, pytest.raises(client.OutOfOrder):
        list(client.read([address], ASKED, lambda _: wrong, json=False))


def test_the_images_are_made_on_the_reader_s_side():
    with serving(Scripted(WHOLE, END)) as address:
        found = rows_of(client.read([address], ASKED))
    assert found == EnvelopeEncoder().encode(ITEMS).to_pylist()
    assert Access().token == ""
    assert ENVELOPE.equals(WHOLE.schema)
