"""Flags of MariaDB's GTID event, given by its body: after the sequence number and domain."""

from __future__ import annotations

from typing import Final

_FLAGS: Final = 12
_STANDALONE, _GROUP_COMMIT, _PREPARED_XA = 1, 2, 64
_START_ALTER, _ROLLBACK_ALTER = 2, 8


def is_statement(gtid: bytes) -> bool:
    """Return True if the transaction is a single statement, which has no COMMIT of its own."""
    return bool(gtid[_FLAGS] & _STANDALONE)


def is_prepared(gtid: bytes) -> bool:
    """Return True if the transaction ends with XA PREPARE."""
    return bool(gtid[_FLAGS] & _PREPARED_XA)


def halves_alter(gtid: bytes) -> bool:
    """True for the first half of an ALTER, which binlog_alter_two_phase logs at its start and at its end."""
    at = _FLAGS + 1 + (8 if gtid[_FLAGS] & _GROUP_COMMIT else 0)
    # A group commit's event ends there unless it has further flags.
    return len(gtid) > at and bool(gtid[at] & (_START_ALTER | _ROLLBACK_ALTER))
