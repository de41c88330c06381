"""The store of a real sorter: after a crash, and while it works, with a plan carried out in it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter

from tidemill.actors import PooledActor
from tidemill.actors.seeded import SeededSystem
from tidemill.codec.blocks import NOTHING, block_of
from tidemill.codec.tidb.key import record_key
from tidemill.events import PUT, Changes, KvChange, Sorted, compose_ts
from tidemill.sorter import SorterOptions, open_sorter
from tidemill.spark.analytics.facts import window_facts
from tidemill.spark.analytics.store_files import stores_in, windows_in
from tidemill.store.plan import VERSION, CompactionPlan, Step

MINUTE = 60_000
NOON = 1_700_000_040_000


class Downstream(PooledActor):
    def __init__(self, got: list[KvChange]) -> None:
        super().__init__()
        self.got = got

    def on_receive(self, message: Sorted) -> None:
        self.got += message.changes


class Work:
    """A sorter without a memory tier, that two tables write to, minute by minute."""

    def __init__(self, directory) -> None:
        self.got: list[KvChange] = []
        self.system = SeededSystem()
        options = SorterOptions(engine="db", directory=directory, memory_bytes=0, block_changes=50)
        self.sorter = open_sorter(options, self.system, self.system.spawn(Downstream, self.got))
        self.refs = {number: self.sorter.add_table(number) for number in (41, 42)}

    def write(self, minute: int) -> None:
        for number, ref in self.refs.items():
            ts = compose_ts(NOON + minute * MINUTE)
            rows = [KvChange(ts + i, 1, PUT, record_key(number, i), b"x" * 50) for i in range(200)]
            ref.tell(Changes(block_of(rows)))
            self.system.run()

    def resolve(self, minute: int) -> None:
        for ref in self.refs.values():
            ref.tell(Changes(NOTHING, compose_ts(NOON + minute * MINUTE) - 1))
        self.system.run()

    def flush(self) -> None:
        for store in self.sorter._stores:
            store.flush()

    def close(self) -> None:
        self.sorter.close()
        self.system.stop()


def counted(directory) -> Counter[tuple[int, int]]:
    """Changes by table and minute, as the files have them."""
    found: Counter[tuple[int, int]] = Counter()
    for store in stores_in(directory):
        for window in windows_in(store):
            for batch in window_facts(store, window, 0):
                for row in batch.to_pylist():
                    if row["kind"] == "block":
                        found[row["table"], row["minute"] - NOON // MINUTE] += row["changes"]
    return found


def die(directory: str) -> None:
    work = Work(directory)
    for minute in range(3):
        work.write(minute)
    work.flush()
    signal.raise_signal(signal.SIGKILL)


def test_what_a_killed_process_left_is_read(tmp_path):
    program = f"""
import importlib.util, pathlib
spec = importlib.util.spec_from_file_location("killed", {__file__!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.die(pathlib.Path({str(tmp_path / "scratch")!r}))
"""
    killed = subprocess.run([sys.executable, "-c", program], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert counted(tmp_path / "scratch") == {(table, m): 200 for table in (41, 42) for m in range(3)}


def test_what_is_dead_beside_something_live_in_a_block_is_not_free(tmp_path):
    work = Work(tmp_path / "scratch")
    work.write(0)
    work.flush()
    [store] = stores_in(tmp_path / "scratch")
    found = [
        row
        for window in windows_in(store)
        for batch in window_facts(store, window, compose_ts(NOON) + 75)
        for row in batch.to_pylist()
        if row["kind"] == "block" and row["table"] == 41
    ]
    assert sum(row["changes"] for row in found) == 200
    whole = [row for row in found if row["newest"] <= compose_ts(NOON) + 75]
    assert [row["free_bytes"] for row in found] == [row["bytes"] if row in whole else 0 for row in found]
    assert any(0 < row["dead_bytes"] < row["bytes"] for row in found)
    work.close()


def test_a_plan_is_carried_out_in_a_sorter_that_works(tmp_path):
    work = Work(tmp_path / "scratch")
    for minute in range(4):
        work.write(minute)
    work.resolve(3)
    assert len(work.got) == 3 * 400
    [store] = work.sorter._stores
    window = store._windows[0].name
    before = store.bytes
    plan = CompactionPlan(VERSION, 0, [Step(store.path.name, window, 0, 0)])
    outcomes = []
    work.sorter.compact(plan, outcomes.extend)
    work.system.run()
    [outcome] = outcomes
    assert outcome.bytes_before == before
    assert outcome.bytes_after == store.bytes
    assert 0.2 < store.bytes / before < 0.3
    work.flush()
    assert counted(tmp_path / "scratch") == {(41, 3): 200, (42, 3): 200}
    work.resolve(4)
    assert work.got == sorted(work.got)
    assert len(work.got) == 4 * 400
    work.close()
