"""Looks at a server's list of binlogs: where it ends, and how long the server keeps what isn't read yet."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from itertools import takewhile
from typing import Final

from msgspec import Struct

from ...codec.mysql.position import Position, file_number
from ...dialects.mysql.client import Session, connect, disconnect, identify, is_mariadb, query, translated
from ...errors import TidemillError
from .options import MysqlOptions

LOOK_SECONDS: Final = 30.0
"""Pause between looks."""
FIRST_SECONDS: Final = 1.0
"""Pause before the first one."""
LOOKS: Final = 20
"""Number of looks over which the rate of the log is averaged."""
_KEEPS: Final = {
    True: ("binlog_expire_logs_seconds", "expire_logs_days", "max_binlog_total_size"),
    False: ("binlog_expire_logs_seconds",),
}
"""Variables by which MariaDB (True) or MySQL purges its binlogs; older servers lack some."""
_DAY: Final = 86_400.0


class LogList(Struct, frozen=True):
    """A server's binlogs at one moment."""

    server: str
    """Identity of the server."""
    sizes: dict[str, int]
    """Bytes by file, the oldest first."""
    keep_seconds: float
    """Seconds that a file is kept after it was written; 0: not limited."""
    keep_bytes: int
    """Bytes of all files above which the oldest is purged; 0: not limited."""
    at: float
    """The clock's now() at this look."""

    @property
    def end(self) -> str:
        """The position of the end; empty without files."""
        return "".join([f"{name}:{size}" for name, size in [*self.sizes.items()][-1:]])

    def bytes_since(self, file: str) -> int | None:
        """Return the bytes of the log from the beginning of a file; None if the file is gone."""
        if file not in self.sizes:
            return None
        return sum(self.sizes.values()) - sum(self.sizes[name] for name in takewhile(file.__ne__, self.sizes))


class RetentionWatch:
    """Looks rarely, in the thread of the log's reader. Any thread may read it."""

    def __init__(self) -> None:
        self.last: LogList | None = None
        """The last look; None before the first, or if this user may not see the list."""
        self._next: float | None = None
        self._looks: deque[tuple[float, dict[str, int]]] = deque(maxlen=LOOKS)

    def is_due(self, now: float) -> bool:
        """Return True if it is time for a look; the first one isn't at the start, which others do."""
        if self._next is None:
            self._next = now + FIRST_SECONDS
        return now >= self._next

    def look(self, options: MysqlOptions, now: float, pace: float = 1.0) -> None:
        """Look at the server's list. Raises nothing: the log's own connection tells what is wrong."""
        self._next = now + LOOK_SECONDS * pace
        with suppress(TidemillError):
            session = connect(options)
            try:
                with translated(options):
                    self.last = listed = _listed(session, now)
            finally:
                disconnect(session)
            self._looks.append((now, listed.sizes))

    def is_read_to(self, position: Position) -> bool:
        """Return True if a position of the same server is at or after the end as of the last look."""
        last = self.last
        if last is None or not last.sizes:
            return False
        file, size = [*last.sizes.items()][-1]
        return (file_number(position.file), position.offset) >= (file_number(file), size)

    def hours_left(self, position: str, age_seconds: float) -> float | None:
        """Return the hours until the server purges the log at a position, which was written `age_seconds`
        ago, if it goes on at its present rate; None if that isn't known, or if it never does."""
        last = self.last
        if last is None or not position:
            return None
        place = Position.parse(position)
        if place.server not in ("", last.server):
            return None
        since = last.bytes_since(place.file)
        if since is None:
            return 0.0
        left = [last.keep_seconds - age_seconds] if last.keep_seconds else []
        rate = self._bytes_per_second()
        if last.keep_bytes and rate:
            left.append((last.keep_bytes - since) / rate)
        return max(0.0, min(left)) / 3600 if left else None

    def _bytes_per_second(self) -> float:
        looks = [*self._looks]
        if len(looks) < 2:
            return 0.0
        (began, before), (ended, after) = looks[0], looks[-1]
        first = max(map(file_number, before), default=0)
        written = sum(
            size - before.get(name, 0) for name, size in after.items() if file_number(name) >= first
        )
        return max(0, written) / (ended - began) if ended > began else 0.0


def _listed(session: Session, now: float) -> LogList:
    mariadb = is_mariadb(session)
    sizes = {str(row[0]): int(row[1]) for row in query(session, "SHOW BINARY LOGS")}
    names = ", ".join(f"'{name}'" for name in _KEEPS[mariadb])
    limits = {
        str(name).lower(): float(str(value))
        for name, value in query(session, f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})")
    }
    seconds = limits.get("binlog_expire_logs_seconds", 0.0) or _DAY * limits.get("expire_logs_days", 0.0)
    keep_bytes = int(limits.get("max_binlog_total_size", 0.0))
    return LogList(identify(session).identity, sizes, seconds, keep_bytes, now)
