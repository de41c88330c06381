"""TiDB as a target that speaks MySQL's protocol: its versions, and its error numbers.

Numbers and messages are those of TiDB's errors.toml; MySQL and MariaDB have no errors of these numbers.
"""

from __future__ import annotations

import re
from typing import Final

_VERSION: Final = re.compile(r"-tidb-v?(\d+)\.(\d+)\.(\d+)", re.I)
_LEAST: Final = (6, 2, 0)
"""First version with SAVEPOINT, and with several clauses in one ALTER TABLE."""

TRY_AGAIN: Final = "[try again later]"
"""End of the message of a transaction that was rolled back and may be repeated."""

CONTENTION: Final = frozenset({8002, 8005, 8022, 8028, 9007})
"""Errors of a transaction that met another one, or a schema change of any table."""

WAITING_HELPS: Final = CONTENTION | {
    8020,  # another session has locked the table
    8027,  # the server's schema is out of date
    8120,  # no start ts from PD
    8229,  # locks of the transaction have expired
    8252,  # the quota of the resource group is used up
    9001,  # PD server timeout
    9002,  # TiKV server timeout
    9003,  # TiKV server is busy
    9004,  # resolve lock timeout
    9005,  # region is unavailable
    9006,  # garbage collection has passed the transaction's start
    9008,  # store token is up to the limit
    9010,  # TiKV server reports stale command
    9011,  # TiKV max timestamp is not synced
    9012,  # TiFlash server timeout
    9013,  # TiFlash server is busy
}

ABOUT_A_ROW: Final = frozenset({8025})
"""A row that is larger than `txn-entry-size-limit`, 6 MiB by default."""

MAX_ROW_BYTES: Final = 5 << 20
"""Size of a row that is below that limit, with what else is in a dead letter."""


def is_tidb(version: str) -> bool:
    """Return True if VERSION() is that of a TiDB, such as 8.0.11-TiDB-v8.1.0."""
    return "tidb" in version.lower()


def too_old(version: str) -> str:
    """Return why a TiDB of this VERSION() can't be a target; empty if it can, or if its version isn't
    known."""
    match = _VERSION.search(version)
    if match is None or tuple(map(int, match.groups())) >= _LEAST:
        return ""
    least = ".".join(map(str, _LEAST[:2]))
    return (
        f"TiDB {'.'.join(match.groups())} has no SAVEPOINT, and takes one clause in an ALTER TABLE: a target"
        f" needs TiDB {least} or newer"
    )
