"""Records of transactions that a target has after its checkpoint: those that overtook others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Protocol

from msgspec import Struct

from ..errors import CheckpointError
from ..events import Ts

APPLIED_TABLE = "tidemill_applied"
"""Name of the table with these records, beside the checkpoint."""


class Applied(Struct, frozen=True):
    """The transactions of one SQL transaction, by commit ts in ascending order; never empty."""

    ts: tuple[Ts, ...]

    @property
    def first(self) -> Ts:
        """Identifies the record: no ts is in two of a feed."""
        return self.ts[0]

    @property
    def last(self) -> Ts:
        return self.ts[-1]

    def text(self) -> str:
        """Return the first ts and the differences of the others, such as "100,1,7"."""
        return ",".join(map(str, [self.first, *(b - a for a, b in pairwise(self.ts))]))


def parse_applied(text: str, where: str) -> Applied:
    """Return the record of that text. Raises CheckpointError if it is damaged."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise CheckpointError(f"{where}: {text[:40]!r} is no list of transactions") from None
    if min(numbers) <= 0:
        raise CheckpointError(f"{where}: {text[:40]!r} is no list of ascending transactions")
    return Applied(tuple(accumulate(numbers)))


class AppliedStore(Protocol):
    """The records of one feed in its target."""

    def load(self) -> list[Applied]:
        """Return all records, once no SQL transaction is open that may add one."""

    def forget(self, firsts: Sequence[Ts]) -> None:
        """Delete records in the open SQL transaction."""


def all_ts(records: Iterable[Applied], after: Ts) -> set[Ts]:
    """Return the transactions above `after` in these records."""
    return {ts for record in records for ts in record.ts if ts > after}
