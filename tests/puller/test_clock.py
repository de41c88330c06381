"""Restarts from checkpoints: each sink gets every transaction once, telling them apart by ts alone."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.codec.mysql.entry import ROLLBACK_MARKER, ROWS, position_of
from tidemill.codec.mysql.position import Position
from tidemill.engine.checkpoint import lowest
from tidemill.errors import CheckpointError
from tidemill.events import Changes, Checkpoint
from tidemill.puller.mysql.commit_clock import CommitClock

from .log import Log, Reader


class Sink:
    """Has a checkpoint and what it was given, as commit positions of transactions with rows."""

    def __init__(self) -> None:
        self.at: Checkpoint | None = None
        self.applied: list[str] = []

    def give(self, ts: int, position: str, has_rows: bool) -> None:
        if self.at is not None and ts <= self.at.ts:
            return
        self.at = Checkpoint(ts, position)
        if has_rows:
            self.applied.append(position)


def write(log: Log, random: Random) -> str:
    """A transaction or a new file; where it ends, if it is one that is followed."""
    log.add(f"at {max(1, log.now + random.choice((-3, 0, 0, 1, 5)))}")
    if random.random() < 0.1:
        log.add("rotate")
        return ""
    if random.random() < 0.1:
        for words in ("gtid", "map t", "insert t 300", "insert t 300", "crash"):
            log.add(words)
        return ""
    table = random.choice(("t", "t", "elsewhere"))
    log.add("gtid")
    for _ in range(random.choice((1, 1, 1, 4))):
        log.add(f"map {table}")
        log.add(f"insert {table} {random.choice((10, 300))}")
    log.add("xid")
    return str(log.end) if table == "t" else ""


def follow(log: Log, start: Position, clock: CommitClock, random: Random) -> list[Changes]:
    """Read to the end in pieces, with lost connections and idle time at the end."""
    reader = Reader(log, start, clock, max_bytes=400)
    found = []
    while reader.decoder.position != log.end:
        found.append(reader.read(random.randint(1, 9)))
        if random.random() < 0.1:
            reader.connect()
    for _ in range(random.randint(0, 2)):
        reader.decoder.idle(log.now + random.randint(-3, 4))
        found.append(reader.read())
    return [changes for changes in found if changes is not None]


def transactions(batches: list[Changes]) -> list[tuple[int, str, bool]]:
    """(ts, position, whether it has rows); checks that each comes once, whole and resolved in time."""
    found = []
    kinds: dict[int, list[int]] = {}
    numbers: dict[int, set[int]] = {}
    resolved = 0
    for changes in batches:
        for change in changes.changes:
            assert change.commit_ts > resolved
            kinds.setdefault(change.commit_ts, []).append(change.key[8])
            numbers.setdefault(change.commit_ts, set()).add(int.from_bytes(change.key[:8], "big"))
            if (position := position_of(change)) is not None:
                found.append((change.commit_ts, position))
        resolved = max(resolved, changes.resolved)
    for ts, made in kinds.items():
        first = 0 if ROLLBACK_MARKER in made else 1
        assert numbers[ts] == set(range(first, first + len(made)))
    assert all(before[0] < after[0] for before, after in pairwise(found))
    assert [ts for ts, _ in found] == list(numbers)
    return [(ts, position, ROWS in kinds[ts] and ROLLBACK_MARKER not in kinds[ts]) for ts, position in found]


@given(st.integers(0, 2**32))
def test_every_sink_gets_every_transaction_once_through_any_restarts(seed: int) -> None:
    random = Random(seed)
    log = Log()
    origin = log.end
    sinks = [Sink(), Sink(), Sink()]
    written: list[str] = []
    for _ in range(5):
        written += filter(None, (write(log, random) for _ in range(random.randint(0, 6))))
        found = [sink.at for sink in sinks]
        start = lowest(found, order=lambda text: Position.parse(text).rank) if all(found) else None
        clock = CommitClock(start.ts if start else 0, [at for at in found if at])
        place = Position.parse(start.position) if start else origin
        made = transactions(follow(log, place, clock, random))
        for sink in sinks:
            # A killed process: each sink got so far, at most.
            for transaction in made[: random.randint(0, len(made))]:
                sink.give(*transaction)
            assert sink.applied == written[: len(sink.applied)]
    for sink in sinks:
        found = [sink.at for sink in sinks]
        start = lowest(found, order=lambda text: Position.parse(text).rank) if all(found) else None
        clock = CommitClock(start.ts if start else 0, [at for at in found if at])
        place = Position.parse(start.position) if start else origin
        for transaction in transactions(follow(log, place, clock, random)):
            sink.give(*transaction)
        assert sink.applied == written


def test_positions_are_ordered_by_the_number_of_the_file() -> None:
    texts = [
        "binlog.000009:900",
        "binlog.000010:4",
        "binlog.000010:100",
        "binlog.999999:4",
        "binlog.1000000:4",
    ]
    ranks = [Position.parse(text).rank for text in texts]
    assert ranks == sorted(ranks)
    assert [str(Position.parse(text)) for text in texts] == texts


@pytest.mark.parametrize("text", ["", "binlog.000001", "binlog:4", "000001:4", "binlog.000001:x"])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(CheckpointError, match="is not a binlog position"):
        Position.parse(text)
