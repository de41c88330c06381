"""Flags of MariaDB's GTID event, given by its body: after the sequence number and domain."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

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
