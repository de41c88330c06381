"""Global transaction ids as the emulated servers give, log and send them.

They are read and written here apart from the feed's own code, so that a fault of that code shows.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple, Protocol, Self
from uuid import UUID

GROUP: Final = UUID("aaaaaaaa-0000-4000-8000-000000000000")
"""The UUID in the GTIDs of all MySQL servers: they are of one group."""
_BLOCK: Final = 1_000_000
"""Numbers that a member of the group takes, before it would need a further block."""


class Gtid(NamedTuple):
    domain: int
    """0 in those of a MySQL."""
    origin: int
    """The id of the server that wrote the transaction first; 0 in those of a MySQL."""
    number: int


class Gtids(Protocol):
    """The ids of the transactions of a log, or those that a client has."""

    def __contains__(self, gtid: Gtid, /) -> bool: ...

    def __str__(self) -> str: ...

    def add(self, gtid: Gtid) -> None: ...

    @property
    def count(self) -> int:
        """The number of ids."""
        ...

    def next(self, server_id: int, domain: int) -> Gtid:
        """Return the id of the next transaction that this server writes."""
        ...

    def has_all(self, other: Self) -> bool: ...

    def encode(self) -> bytes:
        """Return the set as a file of the log begins with it."""
        ...

    @staticmethod
    def text(gtid: Gtid) -> str:
        """Return one id as text."""
        ...


class DomainGtids:
    """The ids of a MariaDB: the last one of each domain has those before it."""

    def __init__(self, text: str = "") -> None:
        """Raises ValueError."""
        self._last: dict[int, Gtid] = {}
        for part in text.split(",") if text else ():
            domain, origin, number = map(int, part.split("-"))
            self.add(Gtid(domain, origin, number))

    def __contains__(self, gtid: Gtid, /) -> bool:
        return gtid.domain in self._last and gtid.number <= self._last[gtid.domain].number

    def __str__(self) -> str:
        return ",".join(map(self.text, self._last.values()))

    def add(self, gtid: Gtid) -> None:
        self._last[gtid.domain] = gtid

    @property
    def count(self) -> int:
        return sum(gtid.number for gtid in self._last.values())

    def next(self, server_id: int, domain: int) -> Gtid:
        last = self._last.get(domain)
        return Gtid(domain, server_id, 1 if last is None else last.number + 1)

    def has_all(self, other: Self) -> bool:
        return all(gtid in self for gtid in other._last.values())

    def encode(self) -> bytes:
        ids = [struct.pack("<IIQ", *gtid) for gtid in self._last.values()]
        return struct.pack("<I", len(ids)) + b"".join(ids)

    @staticmethod
    def text(gtid: Gtid) -> str:
        return "-".join(map(str, gtid))


class IntervalGtids:
    """The ids of a group of MySQL servers, each of which takes numbers from a block of its own: so the set
    has holes, which are filled when a server writes again."""

    def __init__(self, text: str = "") -> None:
        """Raises ValueError."""
        self._intervals: list[tuple[int, int]] = []
        """First and last numbers, in order."""
        for part in text.split(",") if text else ():
            uuid, *intervals = part.split(":")
            if UUID(uuid) == GROUP:
                for interval in intervals:
                    first, _, last = interval.partition("-")
                    self._join(int(first), int(last or first))

    @classmethod
    def decode(cls, data: bytes) -> IntervalGtids:
        """Read the set in the request of a dump. Raises ValueError."""
        made = cls()
        try:
            (uuids,) = struct.unpack_from("<Q", data)
            at = 8
            for _ in range(uuids):
                uuid, count = struct.unpack_from("<16sQ", data, at)
                pairs = struct.unpack_from(f"<{2 * count}Q", data, at + 24)
                at += 24 + 16 * count
                if uuid == GROUP.bytes:
                    for first, end in zip(pairs[::2], pairs[1::2], strict=True):
                        made._join(first, end - 1)
        except struct.error as error:
            raise ValueError(f"a set of GTIDs can't be read: {error}") from None
        return made

    def __contains__(self, gtid: Gtid, /) -> bool:
        return any(first <= gtid.number <= last for first, last in self._intervals)

    def __str__(self) -> str:
        texts = [f"{first}-{last}" if first < last else str(first) for first, last in self._intervals]
        return ":".join([str(GROUP), *texts]) if texts else ""

    def add(self, gtid: Gtid) -> None:
        self._join(gtid.number, gtid.number)

    @property
    def count(self) -> int:
        return sum(last - first + 1 for first, last in self._intervals)

    def next(self, server_id: int, domain: int) -> Gtid:  # noqa: ARG002 - a MySQL has no domains
        number = (server_id - 1) * _BLOCK + 1
        return Gtid(
            0, 0, next((last + 1 for first, last in self._intervals if first <= number <= last), number)
        )

    def has_all(self, other: Self) -> bool:
        return all(
            any(low <= first and last <= high for low, high in self._intervals)
            for first, last in other._intervals
        )

    def encode(self) -> bytes:
        intervals = [struct.pack("<QQ", first, last + 1) for first, last in self._intervals]
        if not intervals:
            return struct.pack("<Q", 0)
        return struct.pack("<Q16sQ", 1, GROUP.bytes, len(intervals)) + b"".join(intervals)

    @staticmethod
    def text(gtid: Gtid) -> str:
        return f"{GROUP}:{gtid.number}"

    def _join(self, first: int, last: int) -> None:
        """Add an interval, and join those that touch it."""
        apart = [one for one in self._intervals if one[1] < first - 1 or one[0] > last + 1]
        touched = [one for one in self._intervals if one not in apart]
        whole = min([first, *(one[0] for one in touched)]), max([last, *(one[1] for one in touched)])
        self._intervals = sorted([*apart, whole])
