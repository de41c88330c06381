"""Waits, dead letters and verifications as sentences for users."""

from __future__ import annotations

from datetime import UTC, datetime

from ..events import JOB_QUEUE, Wait, physical_ms
from .verification import VerifyStatus

NAMED = 3
"""Maximum number of waits of a kind that a sentence names; beyond it only their number is given."""


def sentence(wait: Wait) -> str:
    """Return a sentence with who waits, how long, and for what."""
    who, many = _who(wait)
    return f"{who} {'have' if many else 'has'} waited {max(0.0, wait.seconds):.1f} s for {_what(wait)}"


def letters_sentence(count: int) -> str:
    """Return a sentence about that many dead letters; empty if there are none."""
    return f"{count} dead letter{'s'[: count > 1]}: run tidemill dead-letters list" if count else ""


def divergence_sentence(status: VerifyStatus) -> str:
    """Return a sentence about the tables of a target that differ; empty if there are none."""
    if not status.divergences:
        return ""
    one, more = status.divergences[0], status.diverged - 1
    others = f"; so do {more} more tables" if more > 1 else "; so does another table" if more else ""
    if one.differences:
        kinds = f"{one.missing:,} missing, {one.extra:,} only there, {one.changed:,} changed"
        keys = f", {one.first}" if one.first else ""
        keys += f" to {one.last}" if one.last != one.first else ""
        text = f"{one.differences:,} row{'s'[: one.differences > 1]} of {one.table} ({kinds}{keys})"
        verb = "differ" if one.differences > 1 else "differs"
    else:
        text, verb = f"table {one.table} ({one.detail})", "differs"
    return f"{text} {verb} between the source and sink {status.sink}{others}: run tidemill diff"


def verify_sentence(status: VerifyStatus) -> str:
    """Return a line about the verification of a sink's target."""
    parts = [f"verification of sink {status.sink}: {status.state}"]
    if status.since is not None:
        share = f"{status.percent:.0f}% of the rows compared since {_moment(status.since)}"
        parts.append(f"{share}, now {status.table}" if status.table else share)
    if status.whole_ended is not None:
        parts.append(f"last whole pass ended {_moment(status.whole_ended)}")
    if status.diverged:
        parts.append(f"{status.differences:,} rows differ in {status.diverged:,} tables")
    else:
        parts.append("no differences")
    if status.repaired:
        parts.append(f"{status.repaired:,} rows repaired")
    if status.detail:
        parts.append(status.detail)
    return "; ".join(parts)


def _moment(time: float) -> str:
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _table(wait: Wait) -> str:
    """Return the table that a Wait is about; empty if there is none."""
    if wait.table == JOB_QUEUE:
        return "the job queue of the schema"
    if wait.table:
        return f"table {wait.table}"
    return "" if wait.table_id is None else f"table id {wait.table_id}"


def _who(wait: Wait) -> tuple[str, bool]:
    """Return the subject of a sentence, and True if it is plural."""
    match wait.kind:
        case "table" | "source":
            return f"everything above ts {wait.ts}", False
        case "acknowledgement":
            return "the checkpoint", False
        case "scan turn":
            return f"{wait.count} regions of store {wait.store}", True
        case "division":
            return f"{wait.count} spans", True
        case "memory" | "region" | "scan" | "lookup" | "region retry":
            return _table(wait) or wait.stage, False
    return wait.stage, False


def _what(wait: Wait) -> str:
    region = f"region {wait.region} {_at(wait)}"
    match wait.kind:
        case "answer":
            return f"an answer of {wait.on}"
        case "retry":
            return f"the next attempt, in {wait.pause_seconds:.1f} s: {wait.reason}"
        case "room":
            piled = f"; {wait.count} of {wait.limit} messages are behind it" if wait.count else ""
            return f"room in {wait.on}{piled}"
        case "memory":
            return "room in the sorter"
        case "table":
            return f"{_table(wait)}, the least resolved"
        case "source":
            return f"{wait.on}, which is read the least far"
        case "acknowledgement":
            return "ack(txn) for what was handed out"
        case "barrier":
            return f"what was written to be durable; {wait.count} items come after it"
        case "held":
            reason = f": {wait.reason}" if wait.reason else ""
            return f"its stage to let {_table(wait)} go on; {wait.count} items are held{reason}"
        case "merge":
            return f"an item of {wait.on}: {wait.reason}"
        case "worker":
            held = f"; {wait.count} transactions depend on others like that" if wait.count else ""
            return f"the target to take {wait.reason}{held}"
        case "transaction":
            return f"the end of a large transaction, of which it has {wait.count:,} rows"
        case "region":
            return f"{region}, {wait.seconds:.0f} s behind{_of(wait.count)}"
        case "scan":
            return f"{region}: {wait.reason}{_of(wait.count)}"
        case "lookup":
            return f"a region to be found for {wait.on}{_of(wait.count)}"
        case "region retry":
            where = f" {_at(wait)}" if wait.address else ""
            return (
                f"the next try of region {wait.region}{where}, which fails with {wait.reason} "
                f"({wait.count} such failures so far){_of(wait.limit)}"
            )
        case "lock":
            return _lock(wait)
        case "scan turn":
            return f"one of {wait.limit} incremental scans to end"
        case "division":
            return f"{wait.on}, to be divided into regions"


def _lock(wait: Wait) -> str:
    row = f"{wait.row} of {_table(wait)}" if _table(wait) else f"the {wait.row}"
    return (
        f"the transaction {wait.ts} to end, which began at {_moment(physical_ms(wait.ts) / 1000)} and has "
        f"{wait.ttl_seconds:.0f} s; its lock is on {row}"
    )


def _at(wait: Wait) -> str:
    return f"at store {wait.store} ({wait.address or 'not connected'})" if wait.store else "without a store"


def _of(count: int) -> str:
    """Return the phrase with the total number; empty if all are named."""
    return f" (one of {count} like that)" if count > NAMED else ""
