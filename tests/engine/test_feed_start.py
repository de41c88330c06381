"""A feed whose start fails, or waits."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tidemill.emulator.sql.sql import Tidb
from tidemill.engine import chains, coordinator
from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.engine.teardown import Teardown
from tidemill.errors import StoreError, TidemillError
from tidemill.testing.progress import eventually, feed_ended


@pytest.fixture
def tidb() -> Iterator[Tidb]:
    with Tidb(stores=1, tick_seconds=0.02) as made:
        made.execute("create database shop")
        made.execute("create table shop.item (id int primary key)")
        yield made


def feed_of(address: str, state: Path, **more: Any) -> Feed:
    source = {"url": f"tikv://{address}", "tables": ["shop.*"]}
    sink = {"name": "copy", "url": f"sqlite:///{state.parent}/copy.db"}
    options = feed_options({"source": source, "data_dir": str(state), "sink": [sink], **more})
    return Feed(options, open_sinks(options))


def test_a_disk_that_is_full_at_the_start_is_no_bug(tidb, small_disk, tmp_path):
    state = small_disk / "state"
    state.mkdir()
    filler = small_disk / "filler"
    filler.write_bytes(bytes(4096))
    feed = feed_of(tidb.pd_address, state, sink=[{"name": "copy", "url": f"sqlite:///{tmp_path}/copy.db"}])
    with filler.open("ab", buffering=0) as file:
        while True:
            try:
                file.write(bytes(4096))
            except OSError:
                break
    with filler.open("r+b") as file:
        file.truncate(filler.stat().st_size - 2 * 4096)  # for the status and its next one
    feed.start()
    feed_ended(feed)
    assert isinstance(feed.error, StoreError)
    assert "No space left on device" in str(feed.error)
    assert "bug" not in str(feed.error)


@pytest.mark.parametrize("answers", [False, True])
def test_explain_names_the_address_while_the_source_gives_no_answer(tmp_path, answers):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if answers:
            silent.listen()  # it connects, and nobody reads
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        feed = feed_of(address, tmp_path / "state")
        feed.start()
        waits = eventually(lambda: feed.error or feed.explain())
        assert [(wait.stage, wait.kind, wait.on) for wait in waits] == [("source", "answer", address)]
        feed.stop()
        feed_ended(feed)
    assert feed.error is None


def test_an_error_of_closing_is_logged_beside_the_one_that_ended_the_pipeline(
    tidb, tmp_path, monkeypatch, caplog
):
    def broken(*_: object) -> None:
        raise IndexError("list index out of range")

    def failing(self: Any, *_: object) -> None:
        self._course.end(TidemillError("two shards differ"))

    monkeypatch.setattr(chains.Chains, "close", broken)
    monkeypatch.setattr(chains.Chains, "locks", broken)
    monkeypatch.setattr(coordinator.Coordinator, "_finish_if_done", failing)
    feed = feed_of(tidb.pd_address, tmp_path / "state")
    feed.start()
    feed_ended(feed)
    assert str(feed.error) == "two shards differ"
    assert feed.status().detail == "two shards differ"
    assert "list index out of range" in caplog.text


def test_every_call_of_a_teardown_is_made_and_its_first_error_returned():
    made: list[int] = []

    def fail(number: int) -> None:
        made.append(number)
        raise ValueError(number)

    teardown = Teardown()
    teardown.add(lambda: made.append(1))
    teardown.add(lambda: fail(2))
    teardown.add(lambda: fail(3))
    error = teardown.run()
    assert (made, repr(error)) == ([3, 2, 1], "ValueError(3)")
    assert teardown.run() is None


def test_calls_of_a_teardown_that_are_kept_are_made_later():
    made: list[int] = []
    with Teardown() as teardown:
        teardown.add(lambda: made.append(1))
        kept = teardown.keep()
        teardown.add(lambda: made.append(2))
    assert made == [2]
    assert kept.run() is None
    assert made == [2, 1]


def test_a_teardown_raises_its_error_unless_the_body_has_raised(caplog):
    def undone(body: type[Exception] | None) -> None:
        with Teardown() as teardown:
            teardown.add(lambda: 1 // 0)
            if body is not None:
                raise body

    with pytest.raises(ZeroDivisionError):
        undone(None)
    with pytest.raises(KeyError):
        undone(KeyError)
    assert "ZeroDivisionError" in caplog.text
