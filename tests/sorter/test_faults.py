"""External faults, with the engines that use a disk."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tidemill.actors import ActorSystem
from tidemill.codec.blocks import block_of
from tidemill.errors import StoreError
from tidemill.events import Changes
from tidemill.sorter.intake import Intake

from .rig import ENGINES, Rig, put

THROUGH_THE_DISK: dict[str, dict[str, Any]] = {
    "unified": {"engine": "unified", "memory_bytes": 0},
    "db": {"engine": "db", "memory_bytes": 0},
}


@pytest.fixture(params=THROUGH_THE_DISK)
def on_disk(request) -> dict[str, Any]:
    return THROUGH_THE_DISK[request.param]


def test_an_event_larger_than_every_quota_passes(make_rig, engine):
    rig = make_rig(**{**engine, "memory_bytes": 1, "merge_bytes": 1, "block_bytes": 1})
    rig.add(1, 2)
    rig.tell(1, [put(5, "large", bytes(3 << 20)), put(7, "large", bytes(3 << 20))], resolved=9)
    rig.tell(2, [put(6, "small")], resolved=9)
    rig.run()
    rig.check()


def test_a_disk_quota_too_small_for_one_event_is_named(make_rig, on_disk):
    rig = make_rig(**on_disk, max_disk_bytes=1 << 20)
    rig.add(1)
    rig.tell(1, [put(5, "large", bytes(2 << 20))])
    rig.run()
    (failed,) = rig.failures
    assert isinstance(failed.error, StoreError)
    assert "of 1048576 bytes" in str(failed.error)
    assert "max_disk_bytes" in str(failed.error)


def test_a_full_disk_stops_the_feed_and_nobody_waits(small_disk, on_disk):
    with ActorSystem("test") as system, Rig(small_disk / "scratch", system, **on_disk) as rig:
        rig.add(1)
        for n in range(1, 2000):
            if rig.failures:
                break
            rig.tell(1, [put(n * 10 + i, "k", bytes(20_000)) for i in range(5)])
        rig.writers[1].stop()
        rig.sorter.close()
        assert rig.failures
        for failed in rig.failures:  # each that writes has its own
            assert isinstance(failed.error, StoreError)
            assert "disk" in str(failed.error) or "No space left" in str(failed.error)


@pytest.fixture
def small_files() -> Iterator[None]:
    """The system refuses to write files beyond 256 KiB: an I/O error that is no full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (256 << 10, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.usefixtures("small_files")
def test_an_io_error_stops_the_feed_with_its_reason_and_nobody_waits(tmp_path, on_disk):
    with ActorSystem("test") as system, Rig(tmp_path / "scratch", system, **on_disk) as rig:
        rig.add(1)
        for n in range(1, 5000):
            if rig.failures:
                break
            rig.tell(1, [put(n * 10 + i, "k", bytes(20_000)) for i in range(5)])
        rig.writers[1].stop()
        rig.sorter.close()
        assert rig.failures
        for failed in rig.failures:
            assert isinstance(failed.error, StoreError)
            assert "File too large" in str(failed.error)
            assert str(tmp_path) in str(failed.error)
        assert rig.received == []


@pytest.mark.parametrize("options", [*THROUGH_THE_DISK.values(), {"memory_bytes": 0, "layout": "event"}])
def test_an_io_error_in_reading_stops_the_feed_and_no_change_is_skipped(make_rig, options):
    rig = make_rig(**options, block_changes=50)
    rig.add(1)
    for n in range(1, 2001, 10):
        rig.tell(1, [put(n + i, f"{n + i:04}", bytes(200)) for i in range(10)])
    rig.run()
    to_files(rig)
    with unreadable(rig.directory):
        rig.tell(1, resolved=3000)
        rig.run()
    (failed,) = rig.failures
    assert isinstance(failed.error, StoreError)
    assert re.match(r"table 1: \d+ changes of commit ts \d+ to \d+ can't be read back", str(failed.error))
    assert str(rig.directory) in str(failed.error)
    assert "Is a directory" in str(failed.error)
    left = rig.changes
    assert left == rig.expected(1)[: len(left)]
    assert len(left) < 2000


def to_files(rig: Rig) -> None:
    """Have RocksDB write its buffers; the files are open then."""
    for store in getattr(rig.sorter, "_stores", ()):
        store.flush()


@contextmanager
def unreadable(directory: Path) -> Iterator[None]:
    """The system refuses to read the open files below, as with a bad disk."""
    there = os.open(directory, os.O_RDONLY)
    files = [int(link.name) for link in Path("/proc/self/fd").iterdir() if is_data(link.resolve(), directory)]
    assert files
    kept = {fd: os.dup(fd) for fd in files}
    try:
        for fd in files:
            os.dup2(there, fd)
        yield
    finally:
        for fd, copy in kept.items():
            os.dup2(copy, fd)
            os.close(copy)
        os.close(there)


def is_data(path: Path, directory: Path) -> bool:
    return path.is_relative_to(directory) and (path.suffix == ".sst" or path.name.startswith("sort-"))


def test_two_processes_on_one_directory_the_second_is_told_who_has_it(tmp_path, on_disk):
    with holder(tmp_path, on_disk) as process:
        with pytest.raises(StoreError, match=f"is in use by pid {process.pid}; give each feed its own"):
            Rig(tmp_path, **on_disk)
        process.kill()


def test_after_a_crash_what_was_left_is_wiped_and_the_directory_is_free(tmp_path, on_disk):
    with holder(tmp_path, on_disk) as process:
        process.send_signal(signal.SIGKILL)
    assert len(list(tmp_path.iterdir())) > 1
    with Rig(tmp_path, **on_disk) as rig:
        assert [path.name for path in tmp_path.iterdir()] == ["tidemill.lock"]
        rig.add(1)
        rig.tell(1, [put(5, "again")], resolved=9)
        rig.run()
        rig.check()


def holder(directory: Any, options: dict[str, Any]) -> subprocess.Popen[bytes]:
    """A process that has a sorter with something on disk, and waits."""
    script = (
        "import sys; from pathlib import Path; from tidemill.actors import ActorSystem, PooledActor\n"
        "from tidemill.codec.blocks import block_of; from tidemill.sorter import *\n"
        "from tidemill.events import Changes, KvChange\n"
        "system = ActorSystem('test'); sink = system.spawn(PooledActor)\n"
        f"sorter = open_sorter(SorterOptions(directory=Path(sys.argv[1]), **{options!r}), system, sink)\n"
        "writer = sorter.add_table(1)\n"
        "writer.ask(Changes(block_of(KvChange(n, n, 1, b'k', bytes(999)) for n in range(999))))\n"
        "while not sorter.statistics().spilled_bytes: pass\n"
        "print(flush=True); input()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, directory], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"\n"
    return process


@pytest.mark.parametrize("name", [name for name in ENGINES if name != "db, one put an event"])
def test_no_table_starves_beside_one_that_floods(make_rig, name, monkeypatch):
    turns = []
    take_in = Intake._take_in
    monkeypatch.setattr(Intake, "_take_in", lambda self, asks: (turns.append(1), take_in(self, asks))[1])
    rig = make_rig(**ENGINES[name])
    rig.add(*range(1, 21))
    for n in range(60):
        rig.tell(1, [put(n * 5000 + i, "flood") for i in range(1, 5000, 2)])
    for table in range(2, 21):
        rig.tell(table, [put(9, "k")])
    while any(writer.actor_inbox.messages for table, writer in rig.writers.items() if table > 1):
        rig.system.step()
    assert len(turns) <= 3
    assert len(rig.writers[1].actor_inbox.messages) > 50


def read_counts(rig: Rig, rows: int) -> tuple[int, int]:
    """Send one transaction of `rows` rows through the disk; count the changes read back and released."""
    rig.add(1)
    for start in range(0, rows, 500):
        rig.tell(1, [put(10, b"%08d" % (key * 7919 % rows), bytes(100)) for key in range(start, start + 500)])
        rig.run()
    read = []
    (store,) = rig.sorter._stores
    honest = store.get
    store.get = lambda *place: read.append(1) or honest(*place)
    rig.tell(1, resolved=10)
    rig.run()
    return len(read), len(rig.changes)


def test_the_cost_of_reading_a_large_transaction_is_linear(make_rig):
    counts = []
    for n, rows in enumerate((10_000, 40_000)):
        rig = make_rig(seed=n, memory_bytes=0, merge_bytes=200_000, block_bytes=20_000, block_changes=100)
        blocks, left = read_counts(rig, rows)
        assert left == rows
        counts.append(blocks)
        rig.sorter.close()
    assert counts[1] == 4 * counts[0]


@pytest.mark.soak
def test_four_million_rows_in_one_commit_ts_flow_through_bounded_memory(make_rig):
    rows, quota = 4_000_000, 16 << 20
    rig = make_rig(memory_bytes=quota)
    rig.add(1)
    most = 0
    for start in range(0, rows, 2000):
        changes = [put(10, b"%08d" % (key * 7919 % rows), bytes(50)) for key in range(start, start + 2000)]
        rig.writers[1].tell(Changes(block_of(changes)))
        del changes
        rig.run()
        most = max(most, rig.sorter.statistics().memory_bytes)
    rig.tell(1, resolved=10)
    left, last = 0, b""
    while rig.system.step():
        for message in rig.received:
            for change in message.changes:
                assert change.key > last
                last = change.key
            left += len(message.changes)
        rig.received.clear()
        most = max(most, rig.sorter.statistics().memory_bytes)
    assert left == rows
    assert most <= quota + (40 << 20)
