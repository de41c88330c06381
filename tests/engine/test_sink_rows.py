"""The rows that a sink gets: which sections are accepted, and what they let through."""

from __future__ import annotations

from typing import Any

import pytest

from tidemill.chain import Keep, StageContext
from tidemill.chain.selection.stage import SelectionStage
from tidemill.embedded.arguments import read_arguments
from tidemill.engine.options import FeedOptions, feed_options
from tidemill.errors import ConfigError, SinkError
from tidemill.events import WHOLE, Checkpoint, Chunk
from tidemill.sink.python import PythonSink
from tidemill.testing.changes import ORDERS, PAIRS, MemoryStore, delete, insert, transaction, update

SOURCE = {"url": "mysql://root@127.0.0.1:1", "tables": ["shop.*"]}
URLS = ["sqlite:///a.db", "sqlite:///b.db"]


def options(**sink: Any) -> FeedOptions:
    return feed_options({"source": SOURCE, "sink": [{"name": "copy", **sink}]})


def stage(*rows: dict[str, Any]) -> SelectionStage:
    return SelectionStage(options(url=URLS[0], rows=list(rows)).sinks[0].rules.rows)


def opened(at: Checkpoint, found: FeedOptions, sink: str = "copy") -> SelectionStage:
    made = SelectionStage(next(one.rules.rows for one in found.sinks if one.name == sink))
    made.open(StageContext(feed="f", sink=sink, checkpoint=at, now=float, seek=print))
    return made


@pytest.mark.parametrize(
    ("sink", "error"),
    [
        (
            {"rows": [{"table": ["a.b"]}]},
            r"copy: rows 1\.table: no such key.*accepted: events, tables, where",
        ),
        ({"rows": [{"tables": ["a"]}]}, r"^sink copy: rows 1\.tables: 'a' is not a pattern"),
        (
            {"rows": [{"where": "id = 1"}, {"events": ["truncate"]}]},
            r"rows 2\.events: 'truncate' is none of 'insert', 'upd",
        ),
        ({"rows": [{}]}, r"^sink copy: rows 1: it chooses no rows without where or events"),
        ({"rows": [{"events": []}]}, r"rows 1\.events: no change would come: exclude the tables"),
        ({"rows": [{"where": "id >"}]}, r"^sink copy: rows 1\.where = 'id >': lacks a column or constant"),
        ({"rows": {"where": "id = 1"}}, r"^sink copy: rows: expected \[\[sink\.rows\]\] tables"),
        ({"split_by": ["id"]}, r"split_by: only with urls"),
        ({"urls": URLS}, r"^sink copy: url and urls: give one of them"),
        ({"url": None, "urls": URLS[:1]}, r"^sink copy: urls: at least two, each another one"),
        ({"url": None, "urls": URLS[:1] * 2}, r"^sink copy: urls: at least two, each another one"),
        ({"url": None, "urls": "a"}, r"^sink copy: urls = 'a': expected a list, got `str`"),
        ({"url": None, "urls": URLS, "split_by": ["a", "A"]}, r"copy: split_by: a column is named twice"),
        ({"url": None, "urls": URLS, "relay": "r"}, r"^sink copy: relay: not with urls"),
        ({"url": None, "urls": ["ftp:x", "ftp:y"]}, r"^sink copy-0: no sink writes to 'ftp'; accepted: "),
        ({"url": None, "uls": []}, r"^sink copy: uls: no such key; did you mean 'urls'\?"),
    ],
)
def test_a_wrong_section_is_refused(sink: dict[str, Any], error: str) -> None:
    given = {"url": URLS[0]} | sink
    with pytest.raises(ConfigError, match=error):
        options(**{key: value for key, value in given.items() if value is not None})


def test_each_of_several_urls_is_a_sink_with_the_other_options():
    found = options(urls=URLS, tables=["shop.o*"], rows=[{"where": "id > 7"}], split_by=["id"])
    assert [(one.name, one.url) for one in found.sinks] == [("copy-0", URLS[0]), ("copy-1", URLS[1])]
    for number, one in enumerate(found.sinks):
        assert one.rules.tables is not None
        assert one.rules.tables.patterns == ("shop.o*",)
        texts = [row.condition.text for row in one.rules.rows if row.condition is not None]
        assert texts == [f"share {number} of 2 by id", "id > 7"]


def test_names_of_shares_are_names_of_sinks():
    with pytest.raises(ConfigError, match="two sinks are called 'copy-1'"):
        feed_options(
            {
                "source": SOURCE,
                "sink": [{"name": "copy", "urls": URLS}, {"name": "copy-1", "url": "sqlite:///c"}],
            }
        )


def test_a_sink_gets_the_rows_for_which_its_condition_is_true():
    changes = [
        insert(ORDERS, 1, "a"),
        insert(ORDERS, 2, None),
        update(ORDERS, (1, "a"), (1, "b")),
        update(ORDERS, (3, "b"), (3, "a")),
        update(ORDERS, (4, "a"), (5, "a")),
        delete(ORDERS, 1, "b"),
        insert(PAIRS, 1, "c", 4),
    ]
    only_a = stage({"tables": ["shop.orders"], "where": "note = 'a'"})
    (left,) = only_a.apply([transaction(7, *changes)])
    assert list(left.rows) == [
        changes[0],
        delete(ORDERS, 1, "a"),
        insert(ORDERS, 3, "a"),
        changes[4],
        changes[6],
    ]
    (loaded,) = only_a.apply([transaction(7, *changes[:2], chunk=Chunk("shop.orders", WHOLE))])
    assert list(loaded.rows) == [changes[0]]


def test_the_events_of_a_sink_are_those_of_the_source():
    made = stage({"tables": ["shop.orders"], "where": "note = 'a'", "events": ["insert", "update"]})
    changes = [
        update(ORDERS, (3, "b"), (3, "a")),
        update(ORDERS, (3, "a"), (4, "a")),
        update(ORDERS, (4, "a"), (4, "b")),
        delete(ORDERS, 5, "a"),
        delete(PAIRS, 1, "c", 4),
    ]
    (left,) = made.apply([transaction(7, *changes)])
    assert list(left.rows) == [
        insert(ORDERS, 3, "a"),
        changes[1],
        delete(ORDERS, 4, "a"),
        changes[4],
    ]


def test_a_target_of_other_rows_or_of_another_number_of_sinks_is_refused():
    found = options(urls=URLS)
    (keep,) = opened(Checkpoint(0, ""), found, "copy-1").apply([])
    assert keep == Keep("rows", '[["*.*", "share 1 of 2 by the primary key"]]')
    at = Checkpoint(7, "log:7", stages={keep.key: keep.state})
    assert opened(at, found, "copy-1").apply([]) == []
    for other in (options(urls=[*URLS, "sqlite:///c.db"]), options(urls=URLS, split_by=["id"])):
        with pytest.raises(
            SinkError,
            match=r"loaded by urls, split_by and rows = .*of 2 by the primary.*, and now these are \[\[",
        ):
            opened(at, other, "copy-1")
    with pytest.raises(
        SinkError, match=r"sink copy-0: .* give sink copy-0, and those that share rows with it, an empty"
    ):
        opened(at, found, "copy-0")
    with pytest.raises(SinkError, match="= nothing, and now these are "):
        opened(Checkpoint(7, "log:7"), found, "copy-0")
    with pytest.raises(SinkError, match="and now these are nothing: restore them"):
        opened(at, options(url=URLS[1]))


def test_an_engine_that_can_t_choose_among_rows_refuses_to():
    for found in (options(urls=URLS), options(url=URLS[0], rows=[{"where": "id = 1"}])):
        with pytest.raises(ConfigError, match=r"^sink copy.*: rows and urls: Spark can't choose among rows"):
            found.reject_local_only("Spark")


def test_each_of_several_urls_is_a_sink_of_an_embedded_feed(tmp_path):
    def other():
        return PythonSink("other", print, MemoryStore())

    given = {"name": "copy", "urls": [f"sqlite:///{tmp_path}/{name}.db" for name in "ab"]}
    _, sinks = read_arguments(
        SOURCE["url"],
        SOURCE["tables"],
        data_dir=tmp_path,
        name="f",
        until=None,
        source_options=None,
        sorter=None,
        sinks=[other, given, f"sqlite:///{tmp_path}/c.db"],
    )
    assert [sink.name for sink in sinks] == ["other", "copy-0", "copy-1", "sink-3"]
