"""Types of events in a binlog.

Source: MariaDB's sql/log_event.h, MySQL's libs/mysql/binlog/event/binlog_event.h.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

QUERY: Final = 2
ROTATE: Final = 4
FORMAT_DESCRIPTION: Final = 15
XID: Final = 16
EXECUTE_LOAD_QUERY: Final = 18
TABLE_MAP: Final = 19
INCIDENT: Final = 26
HEARTBEAT: Final = 27
XA_PREPARE: Final = 38
TRANSACTION_PAYLOAD: Final = 40
HEARTBEAT_V2: Final = 41
GTID: Final = 162
MYSQL_GTIDS: Final = frozenset({33, 34, 42})  # with a GTID, without one, with a tagged one
PARTIAL_ROW_DATA: Final = 172
QUERY_COMPRESSED: Final = 165
ROWS_EVENTS: Final = frozenset({
    23, 24, 25,  # write, update, delete
    30, 31, 32, 39,  # MySQL's, and its update with changes of JSON documents
})  # fmt: skip
WITHOUT_EFFECT: Final = frozenset({
    3,  # the end of a file
    5, 13, 14,  # values that the next statement uses
    9, 17,  # data of the next LOAD DATA statement
    29, 35, 36, 37,  # MySQL: annotation, list of GTIDs, a group's members
    160, 161, 163, 164,  # MariaDB: annotation, checkpoint, list of GTIDs, start of encryption
})  # fmt: skip


_FLAGS: Final = 12
_STANDALONE, _GROUP_COMMIT, _PREPARED_XA = 1, 2, 64
_START_ALTER, _ROLLBACK_ALTER = 2, 8


class GtidFlags(NamedTuple):
    """Flags of a transaction."""

    is_statement: bool
    """True if the transaction is a single statement, which has no COMMIT of its own."""
    is_prepared: bool
    """True if the transaction ends with XA PREPARE."""
    halves_alter: bool
    """True for the first half of an ALTER, which binlog_alter_two_phase logs at its start and at its end."""


@lru_cache(maxsize=1024)
def _flags(first: int, rest: int) -> GtidFlags:
    return GtidFlags(
        bool(first & _STANDALONE),
        bool(first & _PREPARED_XA),
        bool(rest & (_START_ALTER | _ROLLBACK_ALTER)),
    )


def flags_of(gtid: bytes) -> GtidFlags:
    """Return the flags of a transaction."""
    first = gtid[_FLAGS]
    # A group commit's event ends after its number unless it has further flags.
    at = _FLAGS + 9 if first & _GROUP_COMMIT else _FLAGS + 1
    return _flags(first, gtid[at] if len(gtid) > at else 0)
