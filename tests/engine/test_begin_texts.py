"""Where a feed begins in each of its sinks, in the words of `check`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tidemill.actors import SystemClock
from tidemill.engine.begin_texts import begin_texts, start_findings
from tidemill.engine.beginning import beginning
from tidemill.engine.opening import open_source
from tidemill.engine.options import FeedOptions, feed_options
from tidemill.events import PENDING, REST, STALE, WHOLE, Checkpoint, TableProgress
from tidemill.sources.source import SourceInfo

FIRST, SECOND, THIRD = "log.000001:4", "log.000001:900", "log.000002:4"
MYSQL: dict[str, Any] = {"url": "mysql://127.0.0.1:1", "tables": ["shop.*"]}
TIKV: dict[str, Any] = {"url": "tikv://127.0.0.1:1", "tables": ["shop.*"]}
SNAPSHOT = "begins with a snapshot"
EMPTY = "without a snapshot: the target must have the tables already, with their rows as of then"
AT_END = f"begins at the source's present end, {EMPTY}"


def at(position: str, **loading: TableProgress) -> Checkpoint:
    return Checkpoint(7, position, {**loading} or None, "here")


def of(tmp_path: Path, source: object, count: int = 1) -> FeedOptions:
    sinks = [{"name": name, "url": f"sqlite:///{tmp_path}/{name}.db"} for name in "abc"[:count]]
    return feed_options({"data_dir": str(tmp_path / "state"), "source": source, "sink": sinks})


def told(options: FeedOptions, stored: Mapping[str, Checkpoint | None], *, renews: bool = False) -> list[str]:
    """The texts of the sinks and then those of the feed."""
    source = open_source(options, SystemClock())
    present = SourceInfo("here", THIRD, [])
    rules = [sink.rules for sink in options.sinks]
    begins = beginning(options, source, present, "here", stored, rules)
    texts = begin_texts(options, source, stored, renews=renews)
    source.close()
    return [*texts.values(), *(one.text for one in start_findings(options, source, stored, begins.start))]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (MYSQL, SNAPSHOT),
        (MYSQL | {"snapshot": True}, SNAPSHOT),
        (MYSQL | {"snapshot": False}, AT_END),
        (MYSQL | {"position": SECOND}, f"begins at {SECOND}, {EMPTY}"),
        (MYSQL | {"position": SECOND, "snapshot": True}, f"begins at {SECOND}, {EMPTY}"),
        (MYSQL | {"position": SECOND, "snapshot": False}, f"begins at {SECOND}, {EMPTY}"),
        (TIKV, SNAPSHOT),
        (TIKV | {"snapshot": False}, AT_END),
        (TIKV | {"start_ts": 4711}, f"begins at 4711, {EMPTY}"),
    ],
)
def test_a_new_feed(tmp_path, source, text):
    assert told(of(tmp_path, source), {"a": None}) == [text]


def test_a_target_of_files_needs_no_tables(tmp_path):
    sink = {"name": "a", "url": f"file://{tmp_path}/rows.ndjson"}
    options = feed_options({"data_dir": str(tmp_path), "source": MYSQL | {"snapshot": False}, "sink": [sink]})
    assert told(options, {"a": None}) == ["begins at the source's present end, without a snapshot"]


@pytest.mark.parametrize("snapshot", [True, False])
def test_a_feed_that_goes_on(tmp_path, snapshot):
    options = of(tmp_path, MYSQL | {"snapshot": snapshot})
    assert told(options, {"a": at(FIRST)}) == [f"goes on from {FIRST}"]


def test_a_position_that_is_not_used_any_more(tmp_path):
    options = of(tmp_path, MYSQL | {"position": SECOND})
    assert told(options, {"a": at(FIRST)}) == [
        f"goes on from {FIRST}",
        "source.position isn't used: a feed begins there only without a checkpoint",
    ]
    options = of(tmp_path, TIKV | {"start_ts": 4711})
    assert told(options, {"a": at("4712")})[-1].startswith("source.start_ts isn't used")
    options = of(tmp_path, several(position=SECOND))
    own = json.dumps({"north": FIRST, "south": FIRST})
    assert told(options, {"a": at(own)})[-1].startswith("source.position isn't used")


@pytest.mark.parametrize(
    ("checkpoint", "text"),
    [
        (at(FIRST, **{"shop.a": WHOLE}), f"goes on from {FIRST}, in its snapshot"),
        (at(FIRST, **{REST: WHOLE, "shop.a": STALE}), f"goes on from {FIRST}, and loads shop.a"),
        (
            at(FIRST, **{REST: WHOLE, "shop.b": STALE, "shop.a": PENDING}),
            f"goes on from {FIRST}, and loads shop.a, shop.b",
        ),
        (
            at(FIRST, **{REST: WHOLE} | {f"shop.t{n}": STALE for n in range(11)}),
            f"goes on from {FIRST}, and loads 11 tables",
        ),
        (at("", **{"shop.a": STALE}), "loads all tables again"),
    ],
)
def test_a_feed_that_has_tables_to_load(tmp_path, checkpoint, text):
    assert told(of(tmp_path, MYSQL), {"a": checkpoint}) == [text]


def test_a_feed_that_is_to_load_all_tables_again(tmp_path):
    assert told(of(tmp_path, MYSQL, 2), {"a": at(FIRST), "b": None}, renews=True) == [
        "loads all tables again",
        SNAPSHOT,
    ]


def test_sinks_at_different_positions(tmp_path):
    assert told(of(tmp_path, MYSQL, 2), {"a": at(SECOND), "b": at(FIRST)}) == [
        f"goes on from {SECOND}",
        f"goes on from {FIRST}",
        f"reads the source from {FIRST}, the lowest position of its sinks and tables",
    ]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, SNAPSHOT),
        ({"snapshot": False}, f"begins where the feed goes on, {EMPTY}"),
        ({"position": THIRD}, f"begins where the feed goes on, {EMPTY}"),
    ],
)
def test_a_new_sink_beside_others(tmp_path, options, text):
    said = told(of(tmp_path, MYSQL | options, 3), {"a": at(SECOND), "b": at(FIRST), "c": None})
    assert said[2:4] == [
        text,
        f"reads the source from {FIRST}, the lowest position of its sinks and tables",
    ]


def several(**options: object) -> list[dict[str, object]]:
    return [
        {"name": name, "url": "mysql://127.0.0.1:1", "tables": [f"{name}.*"], **options}
        for name in ("north", "south")
    ]


def test_several_sources(tmp_path):
    options = of(tmp_path, several(), 2)
    south, north = [json.dumps({"north": own, "south": SECOND, "@": {"north": 3}}) for own in (SECOND, FIRST)]
    assert told(options, {"a": None, "b": None}) == [SNAPSHOT, SNAPSHOT]
    assert told(of(tmp_path, several(snapshot=False)), {"a": None}) == [AT_END]
    assert told(of(tmp_path, several(position=FIRST)), {"a": None}) == [
        f"begins at north at {FIRST}, south at {FIRST}, {EMPTY}"
    ]
    lowest = f"north at {FIRST}, south at {SECOND}"
    assert told(options, {"a": at(south), "b": at(north)}) == [
        f"goes on from north at {SECOND}, south at {SECOND}",
        f"goes on from {lowest}",
        f"reads the source from {lowest}, the lowest position of its sinks and tables",
    ]
