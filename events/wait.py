"""Waits: which part of a feed waits, for what and since when."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

WaitKind: TypeAlias = Literal[
    "answer", "retry", "room", "memory", "table", "source", "acknowledgement",
    "barrier", "held", "worker", "merge", "transaction",
    "region", "scan", "lookup", "region retry", "lock", "scan turn", "division",
]  # fmt: skip


JOB_QUEUE: Final = "schema jobs"
"""Stands for the name of TiDB's queue of schema jobs in `Wait.table`."""


class ActorName(str):
    """The name of an actor that serves one table of the source. A Wait holds it as a plain str."""

    __slots__ = ("table_id",)

    table_id: int

    def __new__(cls, name: str, table_id: int) -> ActorName:
        made = super().__new__(cls, name)
        made.table_id = table_id
        return made


class Wait(Struct, frozen=True, omit_defaults=True):
    """A part that waits. The fields set after `seconds` depend on `kind`."""

    stage: str
    """The part that waits: "source", "sink copy", an actor's name."""
    kind: WaitKind
    """Reason for waiting: an `answer` of a server; the next attempt of a `retry`; `room` in a mailbox;
    `memory` in the sorter; the resolved ts of a `table` or of a `source`; an `acknowledgement` of the
    program; items before a `barrier`; items `held` by a stage; the target, by a `worker`; silent sources of
    a `merge`; the end of a large `transaction`; and for TiKV: a `region` that lags; a `scan` of one; the
    `lookup` of one; a `region retry`; a `lock`; a `scan turn`; a `division` into regions."""
    seconds: float
    """Time waited so far."""
    table: str = ""
    """Full name of the table concerned; empty for none, or for all."""
    table_id: int | None = None
    """The source's id of that table, if its name isn't known."""
    on: str = ""
    """The mailbox, server or keys waited for."""
    reason: str = ""
    """Cause of the wait: an error, or the work in progress."""
    pause_seconds: float = 0.0
    """Time until the next attempt."""
    count: int = 0
    """Number of such waits, of queued messages, or of failures."""
    limit: int = 0
    """Maximum of `count`."""
    region: int = 0
    store: int = 0
    address: str = ""
    """Address of the store."""
    ts: int = 0
    """A resolved ts, or the start ts of the transaction that holds a lock."""
    row: str = ""
    """Handle of the locked row, or the locked key."""
    ttl_seconds: float = 0.0
    """Time to live of a lock."""


def room_wait(who: str, mailbox: str, seconds: float, *, count: int = 0, limit: int = 0) -> Wait:
    """Return the Wait of an actor for room in a mailbox; `count` of `limit` messages are queued in it."""
    named = who if isinstance(who, ActorName) else mailbox
    table_id = named.table_id if isinstance(named, ActorName) else None
    return Wait(str(who), "room", seconds, on=str(mailbox), table_id=table_id, count=count, limit=limit)
