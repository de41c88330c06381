"""The same history through TiKV and through pumps gives the same rows, whatever the pumps do."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tidemill.emulator.faults.pump_schedule import PumpSchedule
from tidemill.emulator.sql.sql import Tidb
from tidemill.engine.feed import Feed
from tidemill.engine.opening import checkpoint_file
from tidemill.engine.options import feed_options
from tidemill.sink.python import python_sink
from tidemill.testing.progress import eventually, feed_ended

from .world import History, Net, PumpFeed


def through_tikv(tidb: Tidb, directory: Path, start_ts: int, end: int) -> Net:
    found = Net()
    options = feed_options(
        {
            "data_dir": str(directory),
            "until": str(end),
            "source": {"url": f"tikv://{tidb.pd_address}", "tables": ["shop.*"], "start_ts": start_ts},
        }
    )
    feed = Feed(options, [python_sink("python", found, checkpoint_file(options, "python"))])
    feed.start()
    feed_ended(feed)
    assert feed.error is None
    return found


def disorder(tidb: Tidb, feed: PumpFeed, history: History) -> None:
    """Let two binlogs of a pump change places while another one has said nothing for long enough."""
    one, other, *_ = tidb.pumps.by_id
    # Only a pump that the feed knows holds the merged ts back.
    eventually(lambda: {one, other} <= {pump.node_id for pump in feed.source._merge.pumps})
    before = feed.progress(one).unsorted
    tidb.pump_silent(other)
    tidb.pump_disorders(one)
    tries = 0
    while feed.progress(one).unsorted == before and tries < 200:
        history.run(2)
        tries += 1
        tidb.pumps.tick()
    tidb.pump_speaks(other)


def leave(tidb: Tidb, feed: PumpFeed, history: History) -> None:
    """Take a pump away once everything that it has is delivered."""
    name = list(tidb.pumps.by_id)[-1]
    tidb.pump_state(name, "closing")
    history.run(3)
    feed.reaches(tidb.tso())
    tidb.pump_state(name, "offline")
    eventually(lambda: name not in [pump.node_id for pump in feed.source._merge.pumps])
    history.run(3)


ORDINARY = 12
"""Number of histories of every run; the others are soaks."""


def play(seed: int, directory: Path) -> None:
    """Run a history with faults through both feeds, and compare."""
    random = Random(seed)
    with Tidb(stores=1, tick_seconds=0.02, seed=seed) as tidb:
        for _ in range(random.randint(1, 4)):
            tidb.add_pump()
        start_ts = tidb.tso()
        history = History(tidb, seed)
        feed = PumpFeed(tidb, directory / "pump", start_ts)
        feed.start()
        schedule = PumpSchedule(tidb, seed, feed.notify)
        for step in range(12):
            schedule.step()
            history.run(random.randint(1, 12))
            if step in (5, 9) and random.random() < 0.4:
                schedule.calm()
                feed.stop()
                feed.start()
        schedule.calm()
        feed.reaches(tidb.tso())
        if len(tidb.pumps.by_id) > 1:
            disorder(tidb, feed, history)
            leave(tidb, feed, history)
        end = tidb.tso()
        feed.reaches(end)
        feed.stop()
        wanted = through_tikv(tidb, directory / "tikv", start_ts, end)
    assert len(wanted.rows) > 12
    assert feed.found.rows == {ts: net for ts, net in wanted.rows.items() if ts <= end}
    assert list(dict.fromkeys(feed.found.ddls)) == wanted.ddls


@pytest.mark.parametrize("seed", range(ORDINARY))
def test_pumps_with_faults_deliver_the_transactions_that_tikv_delivers(seed, tmp_path):
    play(seed, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [*range(ORDINARY, 30), *range(1000, 1300)])
def test_many_histories_with_faults(seed, tmp_path):
    play(seed, tmp_path)


def test_a_pump_that_joins_is_waited_for_from_the_moment_of_its_notice(tidb, tmp_path):
    start_ts = tidb.tso()
    history = History(tidb, 1)
    feed = PumpFeed(tidb, tmp_path, start_ts, detect_seconds=3600)
    feed.start()
    history.run(10)
    feed.reaches(tidb.tso())
    pump = tidb.add_pump("late", serving=False)
    tidb.pump_silent("late")
    feed.notify()
    pump.serving = True
    assert feed.progress("late").last <= tidb.tso()
    began = pump.pulls
    held = feed.progress("late").last
    history.run(30)
    eventually(lambda: pump.pulls and feed.progress("pump-1").last > held)
    assert began == [held]
    assert int(feed.feed.status().sinks[0].position) <= held
    tidb.pump_speaks("late")
    feed.reaches(tidb.tso())
    feed.stop()
