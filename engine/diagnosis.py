"""The cause of a feed's state: of everything that waits, what the rest waits for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from msgspec import Struct

from ..config.advice import advice
from ..events import JOB_QUEUE, Wait, WaitKind
from .lag import Lag
from .sentences import sentence
from .status import RUNNING, FeedStatus, SinkStatus

SHORT_SECONDS: Final = 1.0
"""Waits shorter than this are no cause: everything waits now and then."""
LATE_SECONDS: Final = 2.0
"""Lag of a change inside the feed above which its stage is named though no single wait is long."""
BEHIND_SECONDS: Final = 5.0
"""The same for changes that weren't received."""


class Cause(Struct, frozen=True):
    """Cause of a feed that is held up."""

    stage: str
    """ "source", "source north", "sink copy", or another part, as waits name it."""
    text: str
    remedy: str
    """Advice; empty if `text` has it."""

    @property
    def sentence(self) -> str:
        return f"{self.text}: {self.remedy}" if self.remedy else self.text


def cause_of(status: FeedStatus, waits: Sequence[Wait]) -> Cause | None:
    """Return the root cause; None if nothing holds the feed up."""
    if status.state not in RUNNING:
        return _failure(status) if status.detail else None
    long = [wait for wait in waits if _is_long(wait)]
    first = min(long, key=_order, default=None)
    if first is not None and first.table == JOB_QUEUE and first.region:  # people know their own tables
        first = next((one for one in sorted(long, key=_order) if _is_of_same_region(one, first)), first)
    if first is not None and _rank(first.kind) < _OF_QUEUES:
        return Cause(first.stage, sentence(first), _remedy(first))
    return _late(status) or (None if first is None else _full(first, waits))


def _failure(status: FeedStatus) -> Cause:
    detail, part = status.detail, status.blamed
    text = detail if not part or detail.startswith(part) else f"{part}: {detail}"
    return Cause(part, text, advice(detail))


def _is_long(wait: Wait) -> bool:
    return wait.kind == "retry" or wait.seconds >= SHORT_SECONDS


def _order(wait: Wait) -> tuple[int, float]:
    return _rank(wait.kind), -wait.seconds


def _is_of_same_region(wait: Wait, first: Wait) -> bool:
    return (wait.kind, wait.region) == (first.kind, first.region) and wait.table != JOB_QUEUE


_OF_QUEUES: Final = 7


def _rank(kind: WaitKind) -> int:
    """Return the rank of a kind of waits: a lower one is what a higher one waits for."""
    match kind:
        case "retry":
            return 0
        case "transaction":
            return 1
        case "answer" | "worker" | "lock" | "lookup" | "region retry":
            return 2
        case "acknowledgement" | "held" | "merge":
            return 3
        case "region" | "scan" | "scan turn" | "division":
            return 4
        case "table" | "source":
            return 5
        case "barrier":
            return 6
        case "room" | "memory":
            return _OF_QUEUES
        case _:
            assert_never(kind)


def _remedy(wait: Wait) -> str:
    match wait.kind:
        case "retry":
            return advice(wait.reason)
        case "answer":
            return "see if it runs, if it is reached from here, and what it is busy with"
        case "worker":
            return advice(wait.reason) or (
                "look there for a lock or a slow statement (SHOW FULL PROCESSLIST, pg_stat_activity), and if "
                "the network still passes anything"
            )
        case "acknowledgement":
            return "have the program call ack(txn), or see where it is stuck"
        case "held":
            return "make the same schema change in the other shards, or see tidemill locks"
        case "merge":
            return "see the feed of that source"
        case "transaction":
            return "wait for its end, see what the target is busy with, or make transactions smaller"
        case "lock":
            return "end that transaction in TiDB, or wait until its time to live is over"
        case "lookup" | "region retry" | "region" | "scan":
            return "see PD and that store (tiup cluster display, TiKV's log)"
        case "scan turn" | "division":
            return "wait, or raise region_scan_limit"
        case "table" | "source":
            return "see why that one doesn't go on"
        case "barrier" | "room" | "memory":
            return ""
        case _:
            assert_never(wait.kind)


def _late(status: FeedStatus) -> Cause | None:
    """Return the stage that the oldest change of some sink is in, if it is late there."""
    sink = max(status.sinks, key=lambda sink: sink.lag.total or 0.0, default=None)
    if sink is None or sink.lag.total is None or status.snapshot is not None:
        return None
    lag = sink.lag
    seconds, stage = max(
        (lag.commit_to_received or 0.0, "source"),
        (lag.received_to_resolved or 0.0, "resolved"),
        ((lag.resolved_to_written or 0.0) + (lag.written_to_durable or 0.0), "sink"),
    )
    if stage == "sink" and seconds >= LATE_SECONDS:
        return _slow(sink, seconds)
    if stage == "resolved" and seconds >= LATE_SECONDS:
        return Cause(
            "source",
            f"the source has sent a change {seconds:.1f} s ago, and not yet all that comes before it",
            "wait for the end of a large transaction there, or see which table resolves nothing",
        )
    if stage == "source" and seconds >= BEHIND_SECONDS:
        return _unread(status, lag, seconds)
    return None


def _slow(sink: SinkStatus, seconds: float) -> Cause:
    busy = f", {sink.workers_busy} of its {sink.workers} connections are busy" if sink.workers else ""
    return Cause(
        f"sink {sink.name}",
        f"sink {sink.name} is slow: its oldest change has been on the way into {sink.target} for "
        f"{seconds:.1f} s{busy}",
        "see what the target does (locks, missing indexes, triggers, load), or give the sink more workers",
    )


def _unread(status: FeedStatus, lag: Lag, seconds: float) -> Cause:
    if not status.connected:
        return Cause("source", f"the source isn't connected, for {seconds:.1f} s", "see if it runs")
    rate = f", at {status.rows_per_second:,.0f} rows a second" if status.rows_per_second else ""
    total = lag.total or seconds
    return Cause(
        "source",
        f"the feed catches up with the source: it is {total:.1f} s behind{rate}",
        "wait, or divide its tables among several feeds",
    )


def _full(wait: Wait, waits: Sequence[Wait]) -> Cause | None:
    """Return the stage that others wait for room in, and that itself waits for none."""
    rooms = {one.stage: one.on for one in waits if one.kind == "room"}
    stage, seen = wait.on if wait.kind == "room" else "the sorter", set[str]()
    while stage in rooms and stage not in seen:
        seen.add(stage)
        stage = rooms[stage]
    text = f"{stage} is the slowest stage: what comes before it has waited {wait.seconds:.1f} s for room"
    if stage.startswith("sink "):
        return Cause(stage, text, "see what its target does, or give the sink more workers")
    return Cause(stage, text, "see the load of this machine")
