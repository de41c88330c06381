"""Faults of a network: what happens to each connection of a Proxy, and after how many bytes, by a seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from threading import Lock
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

Kind: TypeAlias = Literal["drop", "freeze", "reset", "cut", "delay", "reorder"]
Way: TypeAlias = Literal["to server", "to client"]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
WAYS: Final[tuple[Way, ...]] = get_args(Way)
BYTES: Final = (20, 20_000)
"""Range of the bytes that are passed between two faults of a connection, even in its logarithm."""
DELAY_SECONDS: Final = 0.05
"""Maximum delay of bytes."""
AIMED_BYTES: Final = 200_000
"""Bytes after which a fault that is aimed at a request comes anyway, as the request may be encrypted."""
MOST_SPARED: Final = 4
"""Limit for the requests that are spared before a fault that is aimed at one."""


class NetworkFault(Struct, frozen=True):
    """A fault of one connection.

    drop: nothing is passed any more, and neither end is told; both are reset after `seconds`
    freeze: nothing is passed for `seconds`, also not that an end has closed; then everything is
    reset: both ends are reset, and what is on the way is lost
    cut: the connection ends for both, in the middle of what is being sent
    delay: the bytes are `seconds` on their way, until the connection's next fault
    reorder: nothing is passed before a later connection is made, or for `seconds`
    """

    kind: Kind
    way: Way
    """The direction whose bytes are counted, and delayed or dropped."""
    after_bytes: int
    """Bytes that are passed before it, since the connection's last fault."""
    seconds: float
    both: bool = False
    """True if a drop is of both directions."""
    aim: bytes = b""
    """Bytes of a request: the fault comes just before them, or before the answer, whichever way it has; after
    `after_bytes` at the latest ..."""
    spared: int = 0
    """... and this number of requests with them is spared."""


class NetworkFaults:
    """Draws the faults of connections, until there have been `limit` of them; used by many threads.

    The seed decides the faults of the n-th connection. When clients connect, and what they send, is a
    matter of time: two runs of a seed are alike, not equal.
    """

    def __init__(self, seed: object, limit: int, *, longest_seconds: float = 3.0, aim: bytes = b"") -> None:
        """`longest_seconds` is that of a freeze or drop. With `aim`, every other fault is one of a request
        with these bytes, or of the answer."""
        self.limit = limit
        self.made: Counter[Kind] = Counter()
        """Number of faults of each kind so far."""
        self.aimed = 0
        """Number of those that were at a request, or an answer, at which they were aimed."""
        self._seed = seed
        self._longest_seconds = longest_seconds
        self._aim = aim
        self._lock = Lock()

    @property
    def is_over(self) -> bool:
        return self.made.total() >= self.limit

    def draw(self, connection: int) -> Iterator[NetworkFault]:
        """Return the faults of a connection, one after the other, without an end."""
        random = Random(f"{self._seed}/{connection}")
        low, high = BYTES
        while True:
            kind, is_aimed = random.choice(KINDS), bool(self._aim) and random.random() < 0.5
            yield NetworkFault(
                kind,
                random.choice(WAYS),
                AIMED_BYTES if is_aimed else int(low * (high / low) ** random.random()),
                random.uniform(0.0, DELAY_SECONDS if kind == "delay" else self._longest_seconds),
                random.random() < 0.5,
                self._aim if is_aimed else b"",
                random.randrange(MOST_SPARED),
            )

    def take(self, kind: Kind, *, aimed: bool = False) -> bool:
        """Count a fault that is about to be made; return False if it mustn't be, as there were enough."""
        with self._lock:
            if self.is_over:
                return False
            self.made[kind] += 1
            self.aimed += aimed
            return True


class PlannedFaults(NetworkFaults):
    """Faults of the first connection, one after the other."""

    def __init__(self, *faults: NetworkFault) -> None:
        super().__init__(0, len(faults))
        self._planned = faults

    def draw(self, connection: int) -> Iterator[NetworkFault]:
        return iter(self._planned if connection == 0 else ())
