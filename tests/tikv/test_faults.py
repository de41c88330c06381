"""A checkpoint never says more than the target has, whatever happens to streams, stores and leaders."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from random import Random

import pytest

from tidemill.codec.checkpoint import decode_checkpoint
from tidemill.codec.tidb.key import record_key
from tidemill.emulator.faults.schedule import Schedule
from tidemill.emulator.sql.sql import Tidb
from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.testing.progress import eventually

WORDS = ("drop_streams", "cut_streams", "split", "merge", "transfer_leader", "store_down", "fail_feed")
KEYS = 40


@pytest.mark.parametrize("seed", range(2))
def test_at_every_checkpoint_the_copy_has_the_rows_of_its_ts_whatever_the_network_does(tmp_path, seed):
    random = Random(seed)
    with Tidb(stores=3, tick_seconds=0.02) as tidb:
        tidb.execute("create database shop")
        tidb.execute("create table shop.item (id int primary key, n int)")
        table_id = tidb.schema.table("shop.item").info.id
        keys = [record_key(table_id, key) for key in range(KEYS)]
        faults = Schedule(tidb, seed, keys, WORDS)
        options = feed_options(
            {
                "data_dir": str(tmp_path / "feed"),
                "source": {"url": f"tikv://{tidb.pd_address}", "tables": ["shop.*"]},
                "sink": [{"url": f"sqlite:///{tmp_path}/copy.db"}],
            }
        )
        history = [(0, {})]
        feed = Feed(options, open_sinks(options))
        feed.start()
        try:
            eventually(lambda: state(tmp_path) is not None)
            for round_ in range(6):
                for number in range(10 * round_, 10 * round_ + 10):
                    history.append(write(tidb, random, history[-1][1], number))
                    if number % 5 == 0:
                        faults.step()
                    compared(tmp_path, history)
                faults.calm()
                newest = history[-1][0]
                eventually(lambda newest=newest: compared(tmp_path, history) == newest)
        finally:
            feed.stop()
            feed.wait()
        assert feed.error is None
        assert faults.hits


def write(tidb, random, rows, number):
    """Commit one transaction; return its commit ts and the rows after it."""
    rows = dict(rows)
    with tidb.transaction() as txn:
        for key in random.sample(range(KEYS), 5):
            if key not in rows:
                txn.insert("shop.item", (key, number))
                rows[key] = number
            elif random.random() < 0.4:
                txn.delete("shop.item", key)
                del rows[key]
            else:
                txn.update("shop.item", key, {"n": number})
                rows[key] = number
    return txn.commit_ts, rows


def state(directory):
    """Return the checkpoint and the rows of the copy, as of one moment; None while it is loaded."""
    try:
        with closing(sqlite3.connect(f"file:{directory}/copy.db?mode=ro", uri=True)) as copy:
            copy.execute("BEGIN")
            (text,) = copy.execute("SELECT checkpoint FROM tidemill_checkpoint").fetchone()
            rows = dict(copy.execute('SELECT id, n FROM "shop.item"'))
    except (sqlite3.OperationalError, TypeError):
        return None
    checkpoint, _ = decode_checkpoint(text, "copy.db")
    return None if checkpoint.loading is not None else (checkpoint.ts, rows)


def compared(directory, history):
    """Compare the copy with the source at the checkpoint's ts; return the ts of the last commit before it."""
    ts, rows = state(directory)
    last, wanted = max((one for one in history if one[0] <= ts), key=lambda one: one[0])
    assert rows == wanted, f"at {ts}"
    return last
