"""A feed of pumps with a relay: its target is brought to the end once the cluster is gone."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest

from tidemill.testing.feeds import CopiedTable

from .place import PumpPlace


@pytest.fixture
def place(tmp_path, tidb) -> PumpPlace:
    made = PumpPlace(tmp_path, tidb)
    relay = f'relay = {{ directory = "{tmp_path / "relay"}", keep_bytes = "1GiB" }}\n'
    made.config.write_text(made.config.read_text() + relay)
    return made


def replay(place: PumpPlace, *arguments: str):
    return CopiedTable.call(place, "replay", *arguments)


def test_the_lost_tail_of_a_target_is_replayed_when_the_cluster_is_gone(place, tidb, tmp_path):
    place.continues()
    backup = tmp_path / "backup.db"
    shutil.copy(place.copy, backup)
    place.insert(4)
    place.continues()
    middle = tidb.tso()
    place.execute("alter table shop.item add column more int default 7")
    with tidb.transaction() as txn:
        for number in range(5, 300):
            txn.insert("shop.item", (number, "new", 8))
    assert place.run().status == 0
    with closing(sqlite3.connect(place.copy)) as copy:
        whole = copy.execute('SELECT * FROM "shop.item" ORDER BY id').fetchall()
    assert len(whole) == 299
    tidb.close()
    shutil.copy(backup, place.copy)
    done = replay(place, str(place.config), "--dry-run")
    assert (done.status, done.err) == (0, "")
    assert "shop.item: 299 insert\nschema change: create shop.item\nschema change: alter table" in done.out
    done = replay(place, str(place.config), "--until", str(middle))
    assert done.status == 0, done
    assert place.copied_ids() == [1, 2, 3, 4]
    done = replay(place, str(place.config))
    assert done.status == 0, done
    assert "replayed 1 transactions, 295 rows, 1 schema changes, 100 %: the target is at " in done.err
    with closing(sqlite3.connect(place.copy)) as copy:
        assert copy.execute('SELECT * FROM "shop.item" ORDER BY id').fetchall() == whole


def test_a_whole_history_is_replayed_into_another_target(place, tmp_path):
    place.continues()
    place.insert(4)
    place.continues()
    other = tmp_path / "other.db"
    done = replay(place, str(tmp_path / "relay"), "--sink", f"sqlite:///{other}", "--table", "shop.item")
    assert done.status == 0, done
    with closing(sqlite3.connect(other)) as copy:
        assert [id_ for (id_,) in copy.execute('SELECT id FROM "shop.item" ORDER BY id')] == [1, 2, 3, 4]


def test_a_relay_is_not_replayed_while_its_feed_runs(place):
    with place.start() as running:
        running.until(lambda status: status.state == "normal" and status.sinks[0].position)
        said = replay(place, str(place.config)).sentence
    assert said == f"relay {place.directory / 'relay'}: a feed uses it: stop the feed first"
    place.config.write_text(place.config.read_text().replace('name = "', 'name = "other-', 1))
    said = replay(place, str(place.config)).sentence
    assert said.startswith(f"relay {place.directory / 'relay'} belongs to sink ")
