"""A feed that compares its target with its source while it runs, under writers."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest

from tidemill.compare import chunks
from tidemill.compare.verification import verified_feed
from tidemill.dialects.sql_reader import FeedReader
from tidemill.engine.options import feed_options
from tidemill.engine.progress import explanation
from tidemill.errors import ConfigError
from tidemill.testing.progress import eventually
from tidemill.testing.shop_copies import log_end, place

from ..dialects.places import SHARED, MariaDbPlace
from .test_diff import IntoPlace, Writer, other_mariadb, target_mariadb  # noqa: F401

VERIFY = {"every": "1s", "share": 1}
"""As fast as possible: passes of a second."""


@pytest.fixture(params=["sqlite", "mariadb"])
def copy(request, tmp_path, mariadb, database, monkeypatch):
    """A feed of the tables item, loose, still and brief."""
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 500)
    monkeypatch.setattr(chunks, "PAGE_ROWS", 100)
    target = SHARED[request.param](request)
    return IntoPlace(tmp_path, mariadb, database, ["item", "loose", "still", "brief"], target, request.param)


@pytest.fixture
def tables(sql):
    sql(
        "CREATE TABLE item (id INT PRIMARY KEY, n INT, name VARCHAR(20))",
        "INSERT INTO item SELECT seq, 0, 'old' FROM seq_1_to_2000",
        "CREATE TABLE loose (a INT, b VARCHAR(20))",
        "INSERT INTO loose SELECT seq % 9, 'x' FROM seq_1_to_300",
        "CREATE TABLE still (id INT PRIMARY KEY, n INT)",
        "INSERT INTO still SELECT seq, 0 FROM seq_1_to_2000",
        "CREATE TABLE brief (id INT PRIMARY KEY, n INT)",
        "INSERT INTO brief VALUES (1, 1)",
    )


@contextmanager
def running(copy, **verify):
    feed = verified_feed(feed_options(copy.given | {"verify": VERIFY | verify}))
    feed.start()
    try:
        yield feed
    finally:
        feed.stop()
        feed.wait()
    assert feed.error is None


def status_of(feed):
    return feed.status().verify[0]


def compared(feed, passes=2):
    """Wait for whole passes that begin from now on."""
    before = status_of(feed).passes
    eventually(lambda: status_of(feed).passes >= before + passes, sign=lambda: status_of(feed).rows_compared)
    return status_of(feed)


def report_of(copy):
    path = next(path for path in copy.directory.rglob("*.differences.jsonl"))
    return [json.loads(line) for line in path.read_text().splitlines()]


def kinds_of(divergence):
    return divergence.table.partition(".")[2], divergence.missing, divergence.extra, divergence.changed


def test_no_difference_is_seen_over_many_ranges_while_writers_go_on(copy, tables, mariadb, database):
    copy.run()
    with running(copy) as feed, Writer(mariadb, database, 3, feed) as writer:
        eventually(lambda: status_of(feed).passes >= 3 and writer.count > 1_000, sign=lambda: writer.count)
        status = status_of(feed)
        assert (status.divergences, status.differences, status.diverged) == ((), 0, 0)
        assert status.rows_compared > 12_000
        assert feed.status().state == "normal"
    assert not list(copy.directory.rglob("*.differences.jsonl"))


def test_planted_differences_are_found_and_named_within_a_pass(copy, tables, mariadb, database):
    copy.run()
    with running(copy) as feed, Writer(mariadb, database, 4, feed):
        compared(feed, 1)
        copy.execute(
            "UPDATE `{}still` SET n=1 WHERE id=7",
            "DELETE FROM `{}still` WHERE id=2000",
            "INSERT INTO `{}still` VALUES (3000, 3)",
        )
        status = compared(feed)
        (one,) = status.divergences
        assert kinds_of(one) == ("still", 1, 1, 1)
        assert {one.first, one.last} <= {"id=7", "id=2000", "id=3000"}
        assert sorted(line.partition(" ")[2] for line in one.rows) == [
            "id=2000: missing in the target",
            "id=3000: only in the target",
            "id=7: n is 0 in the source, 1 in the target",
        ]
        whole = eventually(lambda: feed.status().detail and feed.status())
        assert whole.state == "warning"
        assert explanation(whole, feed.explain())[0].startswith("feed copy: warning: ")
        assert f"3 rows of {database}.still (1 missing, 1 only there, 1 changed" in explanation(whole, [])[0]
        copy.execute(
            "UPDATE `{}still` SET n=0 WHERE id=7",
            "INSERT INTO `{}still` VALUES (2000, 0)",
            "DELETE FROM `{}still` WHERE id=3000",
        )
        assert compared(feed).divergences == ()
    assert {(one["kind"], one["key"]["id"]) for one in report_of(copy)} == {
        ("changed", 7),
        ("missing", 2000),
        ("extra", 3000),
    }


def test_rows_that_differ_are_repaired_beside_the_changes_of_writers(copy, tables, mariadb, database):
    copy.run()
    with running(copy, repair=True) as feed, Writer(mariadb, database, 5, feed):
        copy.execute(
            "UPDATE `{}still` SET n=1 WHERE id IN (7, 700)",
            "DELETE FROM `{}still` WHERE id=2000",
            "INSERT INTO `{}still` VALUES (3000, 3)",
        )
        status = eventually(lambda: status_of(feed).repaired >= 4 and status_of(feed))
        assert (status.repaired, status.divergences) == (4, ())
        assert compared(feed).repaired == 4
        assert feed.status().state == "normal"
    assert {one["key"]["id"] for one in report_of(copy) if one.get("repaired")} == {7, 700, 2000, 3000}
    copy.run()
    assert [one.is_equal for one in copy.diff()] == [True] * 4


def test_a_repair_that_a_change_of_the_source_overtakes_is_made_good(
    copy, tables, mariadb, database, sql, monkeypatch
):
    """The source makes the wrong value of the target the right one between the reading and the repair."""
    copy.run()
    copy.execute("UPDATE `{}still` SET n=1 WHERE id=7")
    overtaken, apply = [], FeedReader.apply

    def late(reader, table, difference):
        if not overtaken:
            sql("UPDATE still SET n=1 WHERE id=7")
            end = log_end(mariadb)
            eventually(lambda: place(feed.status().sinks[0].position) >= end)
            overtaken.append(difference.key)
        return apply(reader, table, difference)

    monkeypatch.setattr(FeedReader, "apply", late)
    with running(copy, repair=True) as feed:
        eventually(lambda: overtaken)
        assert compared(feed).divergences == ()
        assert overtaken == [(7,)]
    monkeypatch.undo()
    assert copy.execute("SELECT n FROM `{}still` WHERE id=7") in ([(1,)], ((1,),))
    assert [one.is_equal for one in copy.diff()] == [True] * 4


def test_a_database_that_is_away_pauses_the_verification_and_not_the_feed(
    tmp_path, mariadb, database, tables, private_mariadb
):
    target = private_mariadb.start()
    target.execute("CREATE DATABASE copy")
    tables_of = ["item", "loose", "still"]
    copy = IntoPlace(tmp_path, mariadb, database, tables_of, MariaDbPlace(target, "copy"))
    copy.given["source"]["retry_longest_seconds"] = 1
    copy.run()
    with running(copy) as feed:
        compared(feed, 1)
        target.kill()
        status = eventually(lambda: status_of(feed).state == "paused" and status_of(feed))
        assert "127.0.0.1" in status.detail
        whole = eventually(lambda: feed.status().verify[0].state == "paused" and feed.status())
        assert f"the verification of sink copy is paused: {status.detail}" in explanation(whole, [])
        target.start()
        compared(feed)
        eventually(lambda: feed.status().state == "normal")
        assert status_of(feed).diverged == 0


def test_a_schema_change_meanwhile_is_no_difference(copy, tables, mariadb, database, sql):
    copy.run()
    with running(copy) as feed, Writer(mariadb, database, 6, feed):
        compared(feed, 1)
        sql("ALTER TABLE still ADD COLUMN more VARCHAR(9) DEFAULT 'x'")
        compared(feed)
        sql("ALTER TABLE still DROP COLUMN n", "UPDATE still SET more='y' WHERE id % 3 = 0")
        sql("DROP TABLE brief", "CREATE TABLE brief (id BIGINT, b VARCHAR(20))")
        sql("INSERT INTO brief VALUES (2, 'b')")
        assert compared(feed).divergences == ()
        copy.execute("UPDATE `{}still` SET more='z' WHERE id=9")
        (one,) = compared(feed).divergences
        assert [line.partition(" ")[2] for line in one.rows] == [
            "id=9: more is 'y' in the source, 'z' in the target"
        ]


def test_a_table_that_is_loaded_again_meanwhile_is_no_difference(copy, tables, mariadb, database):
    copy.given["source"]["chunk_rows"] = 50
    copy.run()
    with running(copy) as feed, Writer(mariadb, database, 7, feed):
        compared(feed, 1)
        for _ in range(2):
            feed.reload_table(f"{database}.still")
            compared(feed, 1)
    assert not list(copy.directory.rglob("*.differences.jsonl"))


def test_a_table_that_differs_itself_is_a_divergence(copy, tables, sql):
    copy.run()
    with running(copy) as feed:
        copy.execute("ALTER TABLE `{}still` DROP COLUMN n", "DROP TABLE `{}loose`")
        status = eventually(lambda: status_of(feed).diverged == 2 and status_of(feed))
        details = {one.table.partition(".")[2]: one.detail for one in status.divergences}
        assert details["loose"] == "the target has no such table"
        assert details["still"].startswith("the target's table lacks")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"sink": [{"name": "k", "url": "kafka://127.0.0.1/t"}]},
            r"^verify: sink k: a Kafka target can't be",
        ),
        ({"sink": [{"name": "k", "url": "duckdb:///x.db"}]}, r"can be compared: SQLite, MySQL, PostgreSQL"),
        ({"filter": [{"tables": ["a.b"], "events": ["delete"]}]}, r"^verify: what \[\[filter\]\] changes"),
        ({"sink": []}, "^verify: the feed has no sink"),
        ({"verify": {"sinks": ["other"]}}, r"^verify\.sinks: other: no such sink; the feed has copy"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_is_connected(tmp_path, changed, said):
    given = {
        "data_dir": str(tmp_path / "state"),
        "source": {"url": "mysql://nobody@127.0.0.1:1/", "tables": ["a.*"]},
        "sink": [{"name": "copy", "url": f"sqlite:///{tmp_path}/copy.db"}],
        "verify": {},
    }
    with pytest.raises(ConfigError, match=said):
        verified_feed(feed_options(given | changed))
