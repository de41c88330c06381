"""Sets of global transaction ids, as text and as what a stream has reached.

MariaDB: the last id of each domain, "0-1-100,1-2-5" (domain, server, number). MySQL: intervals of each
server's ids, "uuid:1-100:105,uuid:tag:1-5".
"""

from __future__ import annotations

import re
from bisect import bisect_right
from struct import Struct
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from ...errors import CheckpointError

MARIADB_GTID: Final = 162
MYSQL_GTID: Final = 33
MYSQL_TAGGED_GTID: Final = 42
_HEADER: Final = 19
_TAG: Final = re.compile(r"[a-z_][a-z0-9_]*", re.IGNORECASE)

_mariadb = Struct("<QI").unpack_from  # number, domain; the server is in the event's header
_mysql = Struct("<B16sQ").unpack_from  # flags, uuid, number
_u64 = Struct("<Q").pack
_u64_pair = Struct("<QQ").pack
_u32_pair = Struct("<II").pack
_u32 = Struct("<I").unpack_from


class Latest(NamedTuple):
    """The latest id of a stream: of one origin only its number grows."""

    origin: bytes
    """MariaDB: the domain and the server, each in 4 bytes. MySQL: the UUID."""
    number: int
    before: str
    """Text of the set up to the number."""
    after: str


class Gtids(Protocol):
    """A set that grows."""

    def add(self, event: bytes) -> None:
        """Add the transaction of a GTID event, given with its header."""

    @property
    def latest(self) -> Latest | None:
        """The id that was added last; None if none was, or if another number isn't all that a later one
        changes."""

    def move(self, number: int) -> None:
        """Add later ids of the latest one's origin, up to this number; of MySQL without a gap."""

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
        self._latest = -1  # domain of the latest transaction
        self._around = "", ""  # the text before and after that domain's
        for part in text.split(",") if text else ():
            domain, server, number = map(int, part.split("-"))
            self._last[domain] = server, number

    def add(self, event: bytes) -> None:
        number, domain = _mariadb(event, _HEADER)
        self._last[domain] = _u32(event, 5)[0], number
        if domain != self._latest:
            self._latest = domain
            index, texts = list(self._last).index(domain), self._texts()
            before, after = texts[:index], texts[index + 1 :]
            self._around = "".join(f"{one}," for one in before), "".join(f",{one}" for one in after)

    @property
    def latest(self) -> Latest | None:
        domain = self._latest
        if domain < 0:
            return None
        server, number = self._last[domain]
        before, after = self._around
        return Latest(_u32_pair(domain, server), number, f"{before}{domain}-{server}-", after)

    def move(self, number: int) -> None:
        self._last[self._latest] = self._last[self._latest][0], number

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
        domain = self._latest
        if domain < 0:
            return ",".join(self._texts())
        server, number = self._last[domain]
        before, after = self._around
        return f"{before}{domain}-{server}-{number}{after}"

    def _texts(self) -> list[str]:
        return [f"{domain}-{server}-{number}" for domain, (server, number) in self._last.items()]


class MySqlGtids:
    def __init__(self, text: str = "") -> None:
        """Raises ValueError."""
        self._intervals: dict[str, list[tuple[int, int]]] = {}
        self._texts: dict[str, str] = {}  # text of each key; empty if it changed
        self._keys: dict[bytes, str] = {}  # by a UUID's bytes
        self._latest = b""  # UUID of the latest transaction, if it has no tag
        for part in text.split(",") if text else ():
            uuid, *rest = part.strip().split(":")
            key = str(UUID(uuid))
            for word in rest:
                if _TAG.fullmatch(word):
                    key = f"{UUID(uuid)}:{word.lower()}"
                    continue
                first, _, last = word.partition("-")
                self._intervals.setdefault(key, []).append((int(first), int(last or first)))
        for intervals in self._intervals.values():
            intervals.sort()
        self._texts = dict.fromkeys(self._intervals, "")

    def add(self, event: bytes) -> None:
        self._latest = b""
        if event[4] == MYSQL_TAGGED_GTID:
            uuid, tag, number = read_tagged(event[_HEADER:])
            self._add(f"{UUID(bytes=uuid)}:{tag}" if tag else str(UUID(bytes=uuid)), number)
            return
        _, uuid, number = _mysql(event, _HEADER)
        key = self._keys.get(uuid)
        if key is None:
            key = self._keys[uuid] = str(UUID(bytes=uuid))
        self._latest = uuid
        self._add(key, number)

    @property
    def latest(self) -> Latest | None:
        if not self._latest:
            return None
        key = self._keys[self._latest]
        *earlier, (first, number) = self._intervals[key]
        whole = str(self)  # every text is made
        start = whole.index(self._texts[key])
        before = f"{whole[:start]}{key}:{':'.join([*map(_interval, earlier), f'{first}-'])}"
        return Latest(self._latest, number, before, whole[start + len(self._texts[key]) :])

    def move(self, number: int) -> None:
        key = self._keys[self._latest]
        self._intervals[key][-1] = self._intervals[key][-1][0], number
        self._texts[key] = ""

    def _add(self, key: str, number: int) -> None:
        self._texts[key] = ""
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

    def encode(self) -> bytes:
        """Encode the set for a request of a dump. Source: sql/rpl_gtid_set.cc, Gtid_set::encode."""
        is_tagged = any(":" in key for key in self._intervals)
        count = len(self._intervals)
        encoded = [_u64(1 << 56 | count << 8 | 1 if is_tagged else count)]
        for key, intervals in self._intervals.items():
            uuid, _, tag = key.partition(":")
            encoded.append(UUID(uuid).bytes)
            if is_tagged:
                encoded.append(bytes([len(tag) << 1]) + tag.encode())
            encoded.append(_u64(len(intervals)))
            encoded += [_u64_pair(first, last + 1) for first, last in intervals]
        return b"".join(encoded)

    @property
    def transactions(self) -> int:
        return sum(last - first + 1 for each in self._intervals.values() for first, last in each)

    def __str__(self) -> str:
        texts = self._texts
        for key, text in texts.items():
            if not text:
                intervals = self._intervals[key]
                texts[key] = f"{key}:{':'.join(map(_interval, intervals))}"
        return ",".join(texts.values())


def _interval(bounds: tuple[int, int]) -> str:
    first, last = bounds
    return f"{first}-{last}" if first < last else str(first)


def parse_gtids(text: str) -> MariaDbGtids | MySqlGtids:
    """Parse a set of either server. Raises CheckpointError."""
    try:
        return MySqlGtids(text) if ":" in text else MariaDbGtids(text)
    except ValueError:
        raise CheckpointError(
            f"{text!r} is not a set of GTIDs like '0-1-100,1-2-5' (MariaDB) or 'uuid:1-100' (MySQL)"
        ) from None


_UUID_BYTES = 16


def read_tagged(body: bytes) -> tuple[bytes, str, int]:
    """Return the UUID, the tag and the number of a GTID event's body. Raises ValueError or IndexError."""
    read = _Fields(body)
    for _ in range(3):  # version, size, the last field that must be known
        read.number()
    read.expect(0)
    read.number()  # flags
    read.expect(1)
    uuid = bytes([read.number() for _ in range(_UUID_BYTES)])
    read.expect(2)
    number = read.number() >> 1  # it has a sign
    read.expect(3)
    return uuid, read.text(), number


class _Fields:
    """Fields one after the other, each after its number."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self) -> int:
        """Read a number: the ones at the low end of its first byte count the bytes that follow."""
        first = self._data[self._at]
        more = (~first & (first + 1)).bit_length() - 1
        size, shift = (9, 8) if more >= 8 else (more + 1, more + 1)
        encoded = self._data[self._at : self._at + size]
        if len(encoded) < size:
            raise ValueError("it ends inside a number")
        self._at += size
        return int.from_bytes(encoded, "little") >> shift

    def text(self) -> str:
        size = self.number()
        encoded = self._data[self._at : self._at + size]
        if len(encoded) < size:
            raise ValueError("it ends inside a text")
        self._at += size
        return encoded.decode("ascii")

    def expect(self, field: int) -> None:
        if (number := self.number()) != field:
            raise ValueError(f"field {number} in place of {field}")
