"""XA transactions that are prepared: their rows are in the binlog, but count only from XA COMMIT on."""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

import pymysql
from pymysql.constants import ER

from ...codec.mysql.position import BinlogOffset
from ...dialects.mysql.client import Session, is_mariadb, query
from ...errors import SourceError
from ...events import KvChange

COMMIT: Final = "XA COMMIT "
ROLLBACK: Final = "XA ROLLBACK "

MAX_BYTES: Final = 256 << 20
"""Maximum size of the rows of all prepared transactions together."""

_head = Struct("<BIII").unpack_from  # 1 if it commits at once, number of the format, lengths of two names


class XaPrepare(NamedTuple):
    """The body of an XA_PREPARE event."""

    xid: str
    """Name of the transaction as XA COMMIT has it."""
    commits: bool
    """True for XA COMMIT ... ONE PHASE."""


def read_prepare(body: bytes) -> XaPrepare:
    commits, number, global_length, branch_length = _head(body)
    names = body[13:]
    if len(names) < global_length + branch_length:
        raise ValueError
    branch = names[global_length : global_length + branch_length]
    return XaPrepare(f"X'{names[:global_length].hex()}',X'{branch.hex()}',{number}", commits == 1)


class _Held(NamedTuple):
    begin: BinlogOffset
    changes: list[KvChange]
    size: int


class Prepared:
    """The prepared transactions between a decoder's position and their ends, in memory.

    A position contains where the oldest of them begins, so that after a restart they are read again.
    """

    def __init__(self) -> None:
        self._bytes = 0
        self._held: dict[str, _Held] = {}

    @property
    def begin(self) -> BinlogOffset | None:
        """Where the oldest transaction begins; None if there is none."""
        return next(iter(self._held.values())).begin if self._held else None

    def hold(self, xid: str, begin: BinlogOffset, changes: list[KvChange]) -> None:
        """Keep the changes of a transaction that is prepared."""
        self.drop(xid)
        size = sum(len(change.value) for change in changes)
        self._held[xid] = _Held(begin, changes, size)
        self._bytes += size

    def check(self, open_bytes: int) -> None:
        """Raise SourceError if the transactions are larger than MAX_BYTES, together with the `open_bytes` of
        the one that is received."""
        if self._bytes + open_bytes > MAX_BYTES:
            raise SourceError(
                f"XA transactions that are only prepared change more than {MAX_BYTES >> 20} MiB of rows: "
                "commit them sooner or change less in each, then start again with a new snapshot"
            )

    def release(self, xid: str) -> list[KvChange]:
        """Return the changes of a transaction that is committed. Raises SourceError for an unknown one."""
        held = self._held.get(xid)
        if held is None:
            raise SourceError(
                f"the binlog has XA COMMIT {xid} of a transaction that was prepared before the feed's start: "
                "load all tables again (tidemill resume FEED --resnapshot '*'), or begin with empty targets"
            )
        self.drop(xid)
        return held.changes

    def drop(self, xid: str) -> None:
        held = self._held.pop(xid, None)
        if held is not None:
            self._bytes -= held.size


def prepared_names(session: Session) -> set[str] | None:
    """Return the names of prepared transactions; None if this user may not see them.

    Raises pymysql's errors: use it inside translated().
    """
    statement = "XA RECOVER FORMAT='SQL'" if is_mariadb(session) else "XA RECOVER CONVERT XID"
    try:
        return {str(row[-1]) for row in query(session, statement)}
    except pymysql.err.Error as error:
        if error.args and error.args[0] in (ER.XAER_RMERR, ER.SPECIFIC_ACCESS_DENIED_ERROR):
            return None
        raise
