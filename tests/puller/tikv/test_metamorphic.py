"""One history under many schedules of faults and in many configurations: always the same ordered output.

A run is known by its seed: history, configuration and faults follow from it. To see one again:

    pytest tests/puller/tikv/test_metamorphic.py -k '[0]' --seed 17
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, get_args

import pytest

from tidemill.codec.tidb.key import decode_record_key, record_key
from tidemill.emulator.cluster import Cluster
from tidemill.emulator.faults.region_errors import WORDS as ERRORS
from tidemill.emulator.faults.schedule import Schedule
from tidemill.emulator.options import CommitMode
from tidemill.emulator.percolator import Rejected
from tidemill.events import DELETE, PUT, Changes, KvChange
from tidemill.puller.tikv.feed.options import EventFeedOptions

from .rig import Rig

TABLES = (11, 12, 13)
KEYS = 60
"""Number of keys of each table."""
MODES: tuple[CommitMode, ...] = get_args(CommitMode)
LEAST_ROWS = 1000
SEGMENTS = 4
FORCED = ("split", "transfer_leader", "drop_streams")
"""Happen in every run, and one more of all words, by the seed."""
WORDS = (
    *(
        "split",
        "merge",
        "transfer_leader",
        "store_down",
        "slow_store",
        "lock",
        "async_lock",
        "fail_next",
        "fail_feed",
    ),
    *("drop_streams", "cut_streams", "hold_scans", "pause_resolved", "pd_leader", "pd_down"),
)
"""Drawn from. Not the clock: where it steps back timestamps stand still for as long, and so do locks."""
SEEDS = len(WORDS)
"""Number of runs of each test, in which every fault must happen."""
ORDINARY = range(0, SEEDS, SEEDS)
SOAK = range(SEEDS, 40 * SEEDS, SEEDS)


class History:
    """Transactions of several tables, and the changes that must come of them."""

    def __init__(self, cluster: Cluster, random: Random) -> None:
        self._cluster = cluster
        self._random = random
        self._values: dict[bytes, bytes] = {}
        self.changes: list[KvChange] = []
        self.last = 0

    def write(self) -> None:
        """One transaction: rows of one or more tables, in one region or many."""
        random = self._random
        mutations: dict[bytes, tuple[str, bytes, bytes]] = {}
        for _ in range(random.choice((1, 2, 5, 20))):
            key = record_key(random.choice(TABLES), random.randrange(KEYS))
            if key in self._values and random.random() < 0.2:
                mutations[key] = ("delete", key, b"")
            else:
                mutations[key] = ("put", key, random.randbytes(random.choice((1, 30, 300))))
        start_ts = self._cluster.tso()
        mode = random.choice(MODES)
        try:
            commit_ts = self._cluster.write(list(mutations.values()), start_ts=start_ts, mode=mode)
        except (
            Rejected
        ):  # its locks outlived their time while a stream was full: it was rolled back by others
            self._cluster.rollback(start_ts, list(mutations))
            return
        for op, key, value in mutations.values():
            self._note(KvChange(commit_ts, start_ts, PUT if op == "put" else DELETE, key, value))
        self.last = commit_ts

    def _note(self, change: KvChange) -> None:
        old = self._values.pop(change.key, b"")
        if change.op == PUT:
            self._values[change.key] = change.value
        self.changes.append(
            KvChange(change.commit_ts, change.start_ts, change.op, change.key, change.value, old)
        )


class Sorted:
    """A model of the sorter: takes the messages in the order they came from all tables."""

    def __init__(self) -> None:
        self.output: list[KvChange] = []
        self.checkpoint = 0
        self._waiting: dict[tuple[Any, ...], KvChange] = {}
        self._resolved = dict.fromkeys(TABLES, 0)

    def begin(self) -> None:
        """A puller begins at the checkpoint: what is above comes again."""
        self._resolved = dict.fromkeys(TABLES, self.checkpoint)

    def take(self, table: int, message: Changes) -> None:
        for change in message.changes:
            assert change.commit_ts > self._resolved[table], "a change at or below its table's resolved ts"
            if change.key.endswith((b"~left", b"~primary")) or change.commit_ts <= self.checkpoint:
                continue  # a lock that a fault left; what came before a restart
            assert decode_record_key(change.key)[0] == table
            plain = (change.commit_ts, change.start_ts, change.op, change.key)
            bare = KvChange(*plain, change.value, change.old_value)
            assert self._waiting.setdefault(plain, bare) == bare, "the same change with other values"
        if message.resolved:
            assert message.resolved > self._resolved[table], "a resolved ts that doesn't move"
            self._resolved[table] = message.resolved
            self._release()

    def _release(self) -> None:
        checkpoint = min(self._resolved.values())
        if checkpoint <= self.checkpoint:
            return
        self.checkpoint = checkpoint
        ready: list[KvChange] = []
        for plain in [plain for plain in self._waiting if plain[0] <= checkpoint]:
            insort(ready, self._waiting.pop(plain))
        self.output += ready


class Run:
    def __init__(self, seed: int, directory: Path) -> None:
        self._seed = seed
        self._random = random = Random(seed)
        self._directory = directory
        self.hits: Counter[str] = Counter()
        self._cluster = Cluster(
            stores=random.choice((1, 2, 3, 4)),
            pd_members=2,
            seed=seed,
            tick_seconds=random.choice((0.005, 0.02)),
            quota_bytes=random.choice((2_000, 1 << 20)),
            scan_rows=random.choice((1, 7, 1024)),
            scans=random.choice((1, 2, 6)),
            filter_span=random.random() < 0.5,
        )
        self._options = EventFeedOptions(
            mailbox=random.choice((2, 5, 128)),
            shard_workers=random.choice((1, 3, 8)),
            high_water=random.choice((0.0, 0.5, 0.7)),
            low_water=random.choice((0.0, 0.2)),
            region_scan_limit=random.choice((1, 40)),
            region_batch=random.choice((1, 20)),
            least_tick_seconds=random.choice((0.001, 0.02)),
            lock_tick_seconds=0.05,
            stale_seconds=0.05,
            least_stall_count=1,
            locks_age_seconds=0.0,
            locks_pause_seconds=0.05,
        )
        self._history = History(self._cluster, random)
        self._sorted = Sorted()
        self._keys = [record_key(table, row) for table in TABLES for row in range(0, KEYS, 5)]
        self._schedule = Schedule(self._cluster, seed, self._keys, WORDS)

    def play(self) -> None:
        with self._cluster:
            rigs = 1 + self._random.randrange(3)
            for number in range(rigs):
                self._schedule.calm()
                self._sorted.begin()
                with Rig(self._cluster, self._directory / str(number), feed=self._options) as rig:
                    for table in TABLES:
                        rig.add(table, self._sorted.checkpoint)
                    self._work(rig, last=number == rigs - 1, rows=LEAST_ROWS * (number + 1) // rigs)
                for table, message in rig.arrived:  # in order, also what came while it stopped
                    self._sorted.take(table, message)
            self.hits += self._schedule.hits
        self._check()

    def _work(self, rig: Rig, *, last: bool, rows: int) -> None:
        history, random = self._history, self._random
        pauses = sorted(random.sample(range(rows), SEGMENTS))
        if last:
            self._force(rig)
        while len(history.changes) < rows:
            history.write()
            if random.random() < 0.15:
                self._schedule.step()
            if pauses and len(history.changes) > pauses[0]:
                pauses.pop(0)
                self._catch_up(rig)
        if last or random.random() < 0.5:
            self._catch_up(rig)

    def _force(self, rig: Rig) -> None:
        """The faults that no run goes without, on a puller that is at work."""
        self._history.write()
        self._catch_up(rig)
        for word in (*FORCED, WORDS[self._seed % len(WORDS)]):
            only = Schedule(self._cluster, self._random.randrange(1 << 30), self._keys, [word])
            for _ in range(200):
                if only.hits or (word == "transfer_leader" and len(self._cluster.stores) == 1):
                    break
                only.step()
                self._history.write()
            self.hits += only.hits
            self._catch_up(rig)

    def _catch_up(self, rig: Rig) -> None:
        self._schedule.calm()
        rig.until_resolved(self._history.last)

    def _check(self) -> None:
        expected = sorted(self._history.changes)
        assert self._sorted.checkpoint >= self._history.last
        assert self._sorted.output == expected


def run(seed: int, directory: Path) -> Counter[str]:
    """How often each fault was hit; an error that was injected counts as itself and as its cause."""
    play = Run(seed, directory)
    try:
        play.play()
        for word in FORCED:
            if word != "transfer_leader" or len(play._cluster.stores) > 1:
                assert play.hits[word], f"no {word} happened"
    except BaseException as error:
        error.add_note(f"with --seed {seed}")
        raise
    return play.hits


def run_many(first: int, directory: Path, only: int | None) -> None:
    if only is not None:
        print(f"\nfaults hit: {run(only, directory)}")
        return
    hits: Counter[str] = Counter()
    for seed in range(first, first + SEEDS):
        hits += run(seed, directory / str(seed))
    print("\nfaults hit:", ", ".join(f"{word} {count}" for word, count in sorted(hits.items())))
    hits["fail_next"] += sum(hits[error] for error in ERRORS)
    assert [word for word in WORDS if not hits[word]] == []


@pytest.mark.parametrize("first", ORDINARY)
def test_the_output_is_the_history(first, tmp_path, request):
    run_many(first, tmp_path, request.config.getoption("--seed"))


@pytest.mark.soak
@pytest.mark.parametrize("first", SOAK)
def test_the_output_is_the_history_many_times(first, tmp_path, request):
    run_many(first, tmp_path, request.config.getoption("--seed"))
