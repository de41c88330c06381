"""A feed of a TiKV cluster, from PD to the sinks, over bytes that a real TiDB wrote."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import tidemill
from tidemill.emulator.cluster import Cluster
from tidemill.engine.options import feed_options
from tidemill.engine.preflight import check_feed
from tidemill.errors import ConfigError, SinkError, SourceError

from .world import Lines, replay, run, vector

HERE = Path(__file__).parent


def held(found: Lines, name: str, rewrite: bool) -> None:
    """Compare with the file of that name."""
    path = HERE / f"{name}.txt"
    text = "\n".join(found.lines) + "\n"
    if rewrite:
        path.write_text(text)
    assert text == path.read_text()


def test_what_a_real_tidb_committed_arrives_in_its_order(cluster, recorded, tmp_path, rewrite):
    start_ts = cluster.tso()
    replay(cluster, recorded.commits)
    found = Lines()
    feed = run(cluster, tmp_path, found, start_ts=start_ts)
    assert feed.error is None
    held(found, "commits", rewrite)


@pytest.mark.parametrize("version", ["v6.1.0", "v8.1.0"])
def test_schema_changes_of_a_real_tidb_are_followed_or_stop_the_feed(cluster, tmp_path, rewrite, version):
    start_ts = cluster.tso()
    replay(cluster, [line for line in vector(f"ddl_events-{version}") if line["kind"] == "commit"])
    found = Lines()
    feed = run(cluster, tmp_path, found, tables=["d1.*"], start_ts=start_ts)
    if feed.error is not None:
        assert isinstance(feed.error, SinkError)
        found.lines.append(re.sub(r"\d{15,}", "T", str(feed.error)))
    held(found, f"ddl-{version}", rewrite)


def test_a_snapshot_and_what_follows_it_are_the_same_rows_as_the_log_alone(cluster, recorded, tmp_path):
    """In SQLite; the log alone begins before the first row."""
    start_ts = cluster.tso()
    half = len(recorded.commits) // 2
    replay(cluster, recorded.commits[:half])
    copy = f"sqlite:///{tmp_path}/copy.db"
    assert run(cluster, tmp_path / "a", sinks=[{"url": copy}]).error is None
    replay(cluster, recorded.commits[half:])
    assert run(cluster, tmp_path / "a", sinks=[{"url": copy}]).error is None

    rows: dict[str, dict[tuple, tuple]] = {}

    def fold(items):
        for item in items:
            for row in item.rows:
                table = rows.setdefault(row.table.name, {})
                if row.before is not None:
                    del table[key_of(row.table, row.before)]
                if row.after is not None:
                    table[key_of(row.table, row.after)] = row.after

    assert run(cluster, tmp_path / "b", fold, start_ts=start_ts).error is None
    assert sum(map(len, rows.values())) > 5
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
        for name, table in rows.items():
            found = connection.execute(f'SELECT count(*) FROM "feed.{name}"').fetchone()[0]
            assert found == len(table), name


def opened(cluster: Cluster, directory: Path) -> tidemill.OpenFeed:
    return tidemill.open(f"tikv://{cluster.pd_address}", ["feed.*"], data_dir=directory, until="now")


def key_of(table, row):
    return tuple(row[index] for index in table.key) or row


def test_a_restart_gives_what_was_not_acknowledged(cluster, recorded, tmp_path):
    replay(cluster, recorded.commits[:2])
    with opened(cluster, tmp_path) as feed:
        for txn in feed:
            feed.ack(txn)
    replay(cluster, recorded.commits[2:])
    found = Lines()
    with opened(cluster, tmp_path) as feed:
        first = next(iter(feed))
        found([first])
    again = Lines()
    with opened(cluster, tmp_path) as feed:
        for txn in feed:
            again([txn])
            feed.ack(txn)
    assert again.lines[: len(found.lines)] == found.lines
    assert len(again.commits) == len(recorded.commits) - 2


def test_a_snapshot_goes_on_behind_the_chunks_that_are_there(cluster, recorded, tmp_path, monkeypatch):
    monkeypatch.setattr("tidemill.sources.tikv_snapshot.CHUNK_ROWS", 1)
    replay(cluster, recorded.commits)
    whole = Lines()
    assert run(cluster, tmp_path / "whole", whole).error is None
    parts = Lines()
    ended = False
    while not ended:
        with opened(cluster, tmp_path / "parts") as feed:
            ended = True
            for txn in feed:
                parts([txn])
                if txn.last:
                    feed.ack(txn)
                    ended = False
                    break
    assert rows_of(parts) == rows_of(whole)


def rows_of(found: Lines) -> list[str]:
    """Each once: what was acknowledged while the feed was being left may come again."""
    lines = {line.partition(": ")[2] for line in found.lines}
    return sorted(line for line in lines if "CreateTable" not in line)


# --- what goes wrong -------------------------------------------------------------------------------------


def failure(cluster: Cluster, directory: Path, **source) -> str:
    feed = run(cluster, directory, Lines(), **source)
    assert isinstance(feed.error, (SourceError, ConfigError)), repr(feed.error)
    return str(feed.error)


def test_a_pattern_that_matches_nothing(cluster, recorded, tmp_path):
    said = failure(cluster, tmp_path, tables=["feed.*", "shop.*"])
    assert said.startswith("source.tables: no table matches 'shop.*'")


def test_another_cluster_than_the_one_wanted(cluster, recorded, tmp_path):
    said = failure(cluster, tmp_path, cluster_id=4711)
    assert "4711" in said


def test_a_start_below_the_gc_safe_point(cluster, recorded, tmp_path):
    start_ts = cluster.tso()
    replay(cluster, recorded.commits)
    cluster.gc(cluster.tso())
    assert "GC safe point" in failure(cluster, tmp_path, start_ts=start_ts)


def test_check_says_what_is_followed(cluster, recorded, tmp_path):
    options = feed_options(
        {
            "data_dir": str(tmp_path),
            "source": {"url": f"tikv://{cluster.pd_address}", "tables": ["feed.a", "nothing.*"]},
            "sink": [{"url": f"sqlite:///{tmp_path}/copy.db"}],
        }
    )
    found = [(finding.level, finding.text) for finding in check_feed(options)]
    assert ("ok", "follows feed.a") in found
    assert ("ok", f"{tmp_path}/copy.db will be made") in found
    assert [level for level, text in found if "nothing.*" in text] == ["error"]


def test_check_names_what_a_postgresql_target_can_not_hold(cluster, recorded, tmp_path):
    first, name = recorded.tables[0], "t" * 64
    info = json.loads(first["table_info_json"]) | {"name": {"O": name, "L": name}}
    recorded.tables[0] = first | {"table_info_json": json.dumps(info)}
    recorded.create_tables(cluster)
    unreachable = "postgresql://127.0.0.1:1"
    options = feed_options(
        {
            "data_dir": str(tmp_path),
            "source": {"url": f"tikv://{cluster.pd_address}", "tables": ["feed.*"]},
            "sink": [
                {"name": "all", "url": f"{unreachable}/all"},
                {"name": "one", "url": f"{unreachable}/one", "tables": ["feed.*", "!feed.t*"]},
            ],
        }
    )
    found = [finding for finding in check_feed(options) if re.search(r"\b63\b", finding.text)]
    assert [(one.level, one.about) for one in found] == [("error", "sink all")]
    assert found[0].text.startswith(f"table feed.{name}: the name {name!r} has 64 bytes")
