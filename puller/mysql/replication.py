"""Looks at the replication of a replica that is followed, whose log is silent once that has stopped."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import pymysql
from pymysql.cursors import DictCursor

from ...dialects.mysql.client import Session, connect, disconnect, is_mariadb, translated
from ...errors import TidemillError
from ..puller import Retrying
from .options import MysqlOptions

LOOK_SECONDS: Final = 10.0
"""Pause between looks while the log is silent."""


class ReplicationWatch:
    """Knows if the followed server replicates. Used by the log reader's thread."""

    def __init__(self) -> None:
        self._next: float | None = None
        self.stopped = ""
        """How its replication has stopped; empty if it goes on, or isn't there, or can't be seen."""

    def report(self, options: MysqlOptions, who: str) -> Retrying | None:
        """Return how the replication has stopped, for the coordinator; None if it goes on."""
        said = f"{options.address}: {self.stopped}"
        return Retrying(said, LOOK_SECONDS, who) if self.stopped else None

    def look(self, options: MysqlOptions, now: float, pace: float = 1.0) -> bool:
        """Look every LOOK_SECONDS times `pace`; return True if `stopped` is to be told again, or is over."""
        if self._next is None:
            self._next = now + LOOK_SECONDS * pace
        if now < self._next:
            return False
        self._next = now + LOOK_SECONDS * pace
        before = self.stopped
        with suppress(TidemillError):  # the log's own connection tells
            session = connect(options)
            try:
                with translated(options):
                    self.stopped = stopped_replication(session)
            finally:
                disconnect(session)
        return bool(self.stopped or before)


def stopped_replication(session: Session) -> str:
    """Return how a replica's replication has stopped; empty if it goes on, if the server is no replica, or if
    this user may not see it."""
    statement = "SHOW ALL SLAVES STATUS" if is_mariadb(session) else "SHOW REPLICA STATUS"
    try:
        with session.cursor(DictCursor) as cursor:
            cursor.execute(statement)
            sources = cursor.fetchall()
    except pymysql.err.Error:
        return ""
    return "; ".join(filter(None, map(_stopped, sources)))


def _stopped(source: dict[str, object]) -> str:
    def of(thread: str) -> str:
        return str(source.get(f"Replica_{thread}_Running", source.get(f"Slave_{thread}_Running")))

    halted = [thread for thread in ("IO", "SQL") if of(thread) != "Yes"]
    if not halted:
        return ""
    host = source.get("Source_Host", source.get("Master_Host"))
    states = " and ".join(f"its {thread} thread is at {of(thread)!r}" for thread in halted)
    errors = [str(source[f"Last_{thread}_Error"]) for thread in halted if source.get(f"Last_{thread}_Error")]
    return ": ".join([f"it is a replica of {host}, and doesn't replicate: {states}", *errors])
