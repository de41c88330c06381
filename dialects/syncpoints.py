"""Syncpoints: pairs of a source's point and a target's at which both have the same rows."""

from __future__ import annotations

from typing import Final, NamedTuple

from ..events import Ts
from .own_tables import OwnTables

SYNCPOINT_TABLE: Final = "tidemill_syncpoint"


class Syncpoint(NamedTuple):
    """At this point the target had every transaction up to `primary_ts`, and nothing else."""

    primary_ts: Ts
    """Commit ts in the source."""
    secondary_ts: int | None
    """Ts as of which a TiDB reads the target's rows; None for a target that can't read past rows."""


class Syncpoints:
    """The syncpoints of one feed in its target. Methods raise the driver's errors."""

    def __init__(self, tables: OwnTables, feed: str) -> None:
        self._tables = tables
        self._feed = feed
        self._name = f"{tables.home}{SYNCPOINT_TABLE}"

    def exist(self) -> bool:
        """Return True if the feed may have recorded one."""
        return self._tables.has(SYNCPOINT_TABLE)

    def create(self) -> None:
        """Create the table unless it is there, in an open transaction."""
        name, text = self._tables.name_type, self._tables.text_type
        self._tables.create(
            SYNCPOINT_TABLE,
            f"feed {name} NOT NULL, primary_ts BIGINT NOT NULL, position {text} NOT NULL, "
            "secondary_ts BIGINT, created_at BIGINT NOT NULL, PRIMARY KEY (feed, primary_ts)",
        )

    def last(self) -> Syncpoint | None:
        """Return the newest syncpoint."""
        rows = self._tables.query(
            f"SELECT primary_ts,secondary_ts FROM {self._name} WHERE feed=? ORDER BY primary_ts DESC LIMIT 1",
            self._feed,
        )
        return Syncpoint(*rows[0]) if rows else None

    def record(self, ts: Ts, position: str) -> None:
        """Add a syncpoint, in an open transaction that began after everything was applied."""
        ((secondary,),) = self._tables.query(f"SELECT {self._tables.snapshot_ts}")
        self._tables.query(
            f"INSERT INTO {self._name} VALUES (?,?,?,?,{self._tables.unix_time})",
            self._feed,
            ts,
            position,
            secondary,
        )

    def lock(self, ts: Ts) -> None:
        """Lock a syncpoint until the end of the open transaction: the sink stands still at its next one."""
        self._tables.query(
            f"SELECT primary_ts FROM {self._name} WHERE feed=? AND primary_ts=?{self._tables.for_update}",
            self._feed,
            ts,
        )

    def forget(self, ts: Ts, seconds: int) -> None:
        """Delete syncpoints before `ts` that are older than `seconds`, in an open transaction.

        Waits while somebody has locked one of them.
        """
        self._tables.query(
            f"SELECT primary_ts FROM {self._name} WHERE feed=? AND primary_ts<?{self._tables.for_update}",
            self._feed,
            ts,
        )
        self._tables.query(
            f"DELETE FROM {self._name} WHERE feed=? AND primary_ts<? "
            f"AND created_at<{self._tables.unix_time}-?",
            self._feed,
            ts,
            seconds,
        )
