"""XA transactions that are prepared when a feed starts: their rows are in the log before the start, and they
count from their end on, which is after it.

The start waits until no transaction is left that was prepared before some place of the log. Later ones
are in the log from that place on, which is read for them alone.
"""

from __future__ import annotations

from typing import Final

from ...codec.mysql.position import BinlogOffset
from ...dialects.mysql.client import connect, disconnect, query, translated
from ...errors import Retryable, SourceError
from ...snapshot.mysql.view import current_end
from .options import MysqlOptions
from .prepared import prepared_names

PREPARED_SECONDS: Final = 10.0
"""Maximum wait for transactions that were prepared before the start."""
_PAUSE_SECONDS: Final = 0.5
_MAX_NAMED: Final = 5


class XaStart:
    """A place of the log: transactions that are prepared once `look` returns were prepared after it."""

    def __init__(self) -> None:
        self.place: BinlogOffset | None = None
        self.is_used = False
        """True if some transaction is prepared, or was at the first look."""
        self._before: set[str] = set()
        self._since: float | None = None

    def look(self, options: MysqlOptions, now: float) -> BinlogOffset:
        """Return the place.

        Raises Retryable while a transaction is prepared that was before, SourceError after PREPARED_SECONDS.
        """
        session = connect(options)
        try:
            with translated(options):
                if self.place is None:
                    end = current_end(session)
                    query(session, "ROLLBACK")
                    self._before = set(prepared_names(session) or ())
                    self.is_used = bool(self._before)
                    self.place = BinlogOffset(end.file, end.offset)
                elif self._before:
                    self._before &= set(prepared_names(session) or ())
        finally:
            disconnect(session)
        if self._before:
            self._since = now if self._since is None else self._since
            said = f"{options.address}: {described(self._before)}"
            if now - self._since >= PREPARED_SECONDS:
                raise SourceError(said)
            raise Retryable(said, _PAUSE_SECONDS)
        return self.place


def described(names: set[str]) -> str:
    """Return what is wrong with transactions that are prepared before the start, and what to do."""
    shown = ", ".join(sorted(names)[:_MAX_NAMED]) + (", ..." if len(names) > _MAX_NAMED else "")
    return (
        f"XA transactions are prepared whose rows are in the log before the start ({shown}): end them by XA "
        "COMMIT or XA ROLLBACK, then start again"
    )
