"""A pipeline that starts: whatever fails, everything that was opened is closed, and no thread is left."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tidemill.actors import Machine, PooledActor, SystemClock
from tidemill.engine.coordinator import Course
from tidemill.engine.failures import Unavailable
from tidemill.engine.options import feed_options
from tidemill.engine.parts import FeedParts
from tidemill.engine.pipeline import start
from tidemill.engine.requests import PipelineRequests, RequestFile, TableRequests
from tidemill.engine.waits import Startup
from tidemill.errors import CheckpointError, ConfigError, Retryable, SourceError, StoreError, TidemillError
from tidemill.events import REST, STALE, WHOLE, Batch, Checkpoint, Item, Sorted, TablePosition, Ts, Wait
from tidemill.puller.puller import PullerStatistics
from tidemill.sink import Sink, SinkFactory
from tidemill.sources.source import Source, SourceInfo, SourceTraits, StartContext


class Noted:
    """Calls of sinks and a source; some of them fail."""

    def __init__(self, **failures: Exception) -> None:
        self.calls: list[str] = []
        self._failures = failures

    def __call__(self, call: str) -> None:
        self.calls.append(call)
        if (error := self._failures.get(call.replace(" ", "_"))) is not None:
            raise error


class NotedSink(Sink):
    def __init__(self, name: str, noted: Noted, at: Checkpoint | None) -> None:
        self.name = self.target = name
        self._noted = noted
        self._at = at

    def open(self) -> Checkpoint | None:
        self._noted(f"open {self.name}")
        return self._at

    def write(self, batch: Batch) -> None:
        self._at = batch.checkpoint or self._at

    def flush(self) -> Checkpoint | None:
        return self._at

    def has_table(self, schema: str, table: str) -> bool:
        return True

    def close(self) -> None:
        self._noted(f"close {self.name}")


class NotedSource(Source):
    address = "noted source"

    def __init__(self, noted: Noted) -> None:
        self._noted = noted
        self.context: StartContext | None = None

    @property
    def traits(self) -> SourceTraits:
        return SourceTraits(reloads=True)

    def look(self) -> SourceInfo:
        self._noted("look")
        return SourceInfo("src", "9", [("shop", "item")])

    def rank(self, position: str) -> int:
        return int(position)

    def behind(self, sink: str, position: str, end: str) -> str:
        return f"sink {sink} is at {position}, after {end}"

    def start(self, context: StartContext) -> None:
        self.context = context
        context.compute.spawn(PooledActor, supervisor=context.coordinator)
        self._noted("start")

    def mount(self, released: Sorted) -> list[Item]:
        raise AssertionError(released)

    def acknowledged(self, ts: Ts) -> None:
        pass

    def check_seek(self, position: str) -> None:
        pass

    def statistics(self) -> PullerStatistics | None:
        return None

    def waits(self) -> list[Wait]:
        return []

    def table_name(self, table_id: int) -> str:
        return ""

    def stop(self) -> None:
        self._noted("stop")

    def close(self) -> None:
        self._noted("close source")


def at(position: str) -> Checkpoint:
    return Checkpoint(int(position), position, None, "src")


def parts_of(
    directory: Path, noted: Noted, *found: Checkpoint | None, **more: Any
) -> tuple[FeedParts, NotedSource]:
    options = feed_options(
        {
            "source": {"url": "tikv://127.0.0.1:1", "tables": ["shop.*"]},
            "data_dir": str(directory),
            "sink": [{"name": f"s{number}", "url": f"sqlite:///{number}.db"} for number in range(len(found))],
            **more,
        }
    )
    source, clock = NotedSource(noted), SystemClock()
    sinks = [SinkFactory(lambda n=n, c=c: NotedSink(f"s{n}", noted, c)) for n, c in enumerate(found)]
    parts = FeedParts(
        options=options,
        sinks=sinks,
        runtime=Machine(clock),
        startup=Startup(clock),
        open_source=lambda *_: source,
    )
    return parts, source


def threads() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name.startswith(("compute-", "blocking-"))}


@pytest.fixture
def before() -> set[threading.Thread]:
    """Threads of earlier tests, whose targets don't answer."""
    return threads()


OPENED = ["open s0", "open s1", "look"]
CLOSED = ["close source", "close s1", "close s0"]
STOPPED = ["close s0", "close s1"]
"""Calls of the sinks' actors, in any order."""


@pytest.mark.parametrize(
    ("failures", "more", "error", "calls"),
    [
        ({"open_s1": Retryable("away")}, {}, Unavailable, ["open s0", "open s1", "close s1", "close s0"]),
        ({"look": SourceError("no")}, {}, SourceError, [*OPENED, *CLOSED]),
        ({}, {"source": {"url": "tikv://h:1", "tables": ["x.*"]}}, ConfigError, [*OPENED, *CLOSED]),
        ({}, {"sorter": {"directory": "/dev/null/x"}}, StoreError, [*OPENED, *STOPPED, *CLOSED]),
        ({"start": Retryable("away")}, {}, Unavailable, [*OPENED, "start", *STOPPED, *CLOSED]),
    ],
    ids=["a sink", "the source", "a check", "the sorter", "the start of the source"],
)
def test_a_start_that_fails_closes_what_it_has_opened(tmp_path, failures, more, error, calls, before):
    noted, course = Noted(**failures), Course(SystemClock())
    parts, _ = parts_of(tmp_path, noted, None, None, **more)
    with pytest.raises(error):
        start(parts, PipelineRequests(), course)
    if calls[-5:-3] == STOPPED:
        noted.calls[-5:-3] = sorted(noted.calls[-5:-3])
    assert noted.calls == calls
    assert course.abandoned == []
    assert threads() <= before


def test_an_error_of_the_undoing_is_logged_beside_the_one_of_the_start(tmp_path, caplog):
    noted = Noted(look=SourceError("not readable"), close_s0=TidemillError("not closed"))
    parts, _ = parts_of(tmp_path, noted, None)
    with pytest.raises(SourceError, match="not readable"):
        start(parts, PipelineRequests(), Course(parts.clock))
    assert "not closed" in caplog.text


def test_a_checkpoint_after_the_end_of_the_source_is_refused_before_anything_starts(tmp_path):
    noted = Noted()
    parts, _ = parts_of(tmp_path, noted, at("10"))
    with pytest.raises(CheckpointError, match="sink s0 is at 10, after 9"):
        start(parts, PipelineRequests(), Course(parts.clock))
    assert noted.calls == ["open s0", "look", "close source", "close s0"]


@pytest.mark.parametrize(("seek", "begins"), [(None, "5"), ("7", "5"), ("3", "3")])
def test_the_source_begins_at_the_lowest_checkpoint_or_where_a_stage_needs_it(tmp_path, seek, begins, before):
    noted = Noted()
    parts, source = parts_of(tmp_path, noted, at("8"), at("5"))
    position = None if seek is None else TablePosition(int(seek), seek)
    pipeline = start(parts, PipelineRequests(seek=position), Course(parts.clock))
    pipeline.close()
    assert pipeline.course.error is None
    assert source.context is not None
    assert source.context.start == at(begins)
    assert source.context.sink_checkpoints == [at("8"), at("5")]
    assert noted.calls[:4] == ["open s0", "open s1", "look", "start"]
    assert noted.calls[4] == "stop"
    assert noted.calls[-3:] == CLOSED
    assert threads() <= before


def test_a_feed_at_its_end_is_over_once_its_source_has_started(tmp_path):
    parts, _ = parts_of(tmp_path, Noted(), at("9"), until="now")
    pipeline = start(parts, PipelineRequests(), Course(parts.clock))
    assert pipeline.course.over.wait(20)
    pipeline.close()
    assert pipeline.course.error is None


def test_a_table_to_be_loaded_again_keeps_a_feed_from_its_end(tmp_path):
    parts, source = parts_of(tmp_path, Noted(), at("9"), at("9"), until="now")
    RequestFile(parts.options.data_dir).add(both := TableRequests(load_again=("shop.item", "other.item")))
    pipeline = start(parts, PipelineRequests(both), Course(parts.clock))
    pipeline.close()
    assert not pipeline.course.over.is_set()
    assert source.context is not None
    assert source.context.unneeded == {"shop.item"}, "the feed doesn't follow the other one"
    loading = {REST: WHOLE, "shop.item": STALE}
    assert [one.loading for one in source.context.sink_checkpoints] == [loading, loading]
    assert not RequestFile(parts.options.data_dir).load().names
