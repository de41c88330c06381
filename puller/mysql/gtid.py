"""Sets of global transaction ids, as text and as what a stream has reached.

MariaDB: the last id of each domain, "0-1-100,1-2-5" (domain, server, number). MySQL: intervals of each
server's ids, "uuid:1-100:105,uuid:tag:1-5".
"""

from __future__ import annotations

import re
from bisect import bisect_right
from struct import Struct
from typing import Final, Protocol
from uuid import UUID

from ...errors import CheckpointError

MARIADB_GTID: Final = 162
MYSQL_GTID: Final = 33
_HEADER: Final = 19
_TAG: Final = re.compile(r"[a-z_][a-z0-9_]*", re.IGNORECASE)

_mariadb = Struct("<QI").unpack_from  # number, domain; the server is in the event's header
_mysql = Struct("<B16sQ").unpack_from  # flags, uuid, number
_u32 = Struct("<I").unpack_from


class Gtids(Protocol):
    """A set that grows."""

    def add(self, event: bytes) -> None:
        """Add the transaction of a GTID event, given with its header."""

    def contains(self, other: Gtids) -> bool: ...

    def meets(self, other: Gtids) -> bool:
        """True if both have ids of one domain or server: they may be of the same replication topology."""

    @property
    def transactions(self) -> int:
        """Number that is larger for a larger set."""


class MariaDbGtids:
    def __init__(self, text: str = "") -> None:
        """Raises ValueError."""
        self._last: dict[int, tuple[int, int]] = {}
        for part in text.split(",") if text else ():
            domain, server, number = map(int, part.split("-"))
            self._last[domain] = server, number

    def add(self, event: bytes) -> None:
        number, domain = _mariadb(event, _HEADER)
        self._last[domain] = _u32(event, 5)[0], number

    def contains(self, other: Gtids) -> bool:
        return isinstance(other, MariaDbGtids) and all(
            number <= self._last.get(domain, (0, -1))[1] for domain, (_, number) in other._last.items()
        )

    def meets(self, other: Gtids) -> bool:
        return isinstance(other, MariaDbGtids) and not self._last.keys().isdisjoint(other._last)

    @property
    def transactions(self) -> int:
        return sum(number for _, number in self._last.values())

    def __str__(self) -> str:
        return ",".join(f"{domain}-{server}-{number}" for domain, (server, number) in self._last.items())


class MySqlGtids:
    def __init__(self, text: str = "") -> None:
        """Raises ValueError."""
        self._intervals: dict[str, list[tuple[int, int]]] = {}
        for part in text.split(",") if text else ():
            uuid, *rest = part.strip().split(":")
            key = str(UUID(uuid))
            for word in rest:
                if _TAG.fullmatch(word):
                    key = f"{UUID(uuid)}:{word}"
                    continue
                first, _, last = word.partition("-")
                self._intervals.setdefault(key, []).append((int(first), int(last or first)))
        for intervals in self._intervals.values():
            intervals.sort()

    def add(self, event: bytes) -> None:
        _, uuid, number = _mysql(event, _HEADER)
        self._add(str(UUID(bytes=uuid)), number)

    def _add(self, key: str, number: int) -> None:
        intervals = self._intervals.setdefault(key, [])
        at = bisect_right(intervals, (number, number))
        if at and intervals[at - 1][1] >= number:
            return
        intervals.insert(at, (number, number))
        if at + 1 < len(intervals) and intervals[at + 1][0] == number + 1:
            intervals[at : at + 2] = [(number, intervals[at + 1][1])]
        if at and intervals[at - 1][1] == number - 1:
            intervals[at - 1 : at + 1] = [(intervals[at - 1][0], intervals[at][1])]

    def contains(self, other: Gtids) -> bool:
        return isinstance(other, MySqlGtids) and all(
            any(low <= first and last <= high for low, high in self._intervals.get(key, ()))
            for key, intervals in other._intervals.items()
            for first, last in intervals
        )

    def meets(self, other: Gtids) -> bool:
        return isinstance(other, MySqlGtids) and not self._intervals.keys().isdisjoint(other._intervals)

    @property
    def has_tags(self) -> bool:
        return any(":" in key for key in self._intervals)

    @property
    def transactions(self) -> int:
        return sum(last - first + 1 for each in self._intervals.values() for first, last in each)

    def __str__(self) -> str:
        return ",".join(
            f"{key}:{':'.join(f'{a}-{b}' if a < b else str(a) for a, b in intervals)}"
            for key, intervals in self._intervals.items()
        )


def parse_gtids(text: str) -> MariaDbGtids | MySqlGtids:
    """Parse a set of either server. Raises CheckpointError."""
    try:
        return MySqlGtids(text) if ":" in text else MariaDbGtids(text)
    except ValueError:
        raise CheckpointError(
            f"{text!r} is not a set of GTIDs like '0-1-100,1-2-5' (MariaDB) or 'uuid:1-100' (MySQL)"
        ) from None
