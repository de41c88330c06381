"""A task's changes from captures, as a replacement of `bounded`."""

from __future__ import annotations

from collections.abc import Generator, Iterable

import pyarrow as pa

from ..offsets.offset import Offset
from ..read import bounded
from ..read.options import ReadOptions
from ..read.parts import Part
from .captures import Captures
from .client import read
from .ticket import Ticket


def changes(
    options: ReadOptions, part: Part, start: Offset, end: Offset, captures: Captures
) -> Generator[pa.RecordBatch]:
    """Yield the same as `bounded.changes`, which continues if the captures fail."""
    ticket = Ticket(
        start, end, options.patterns, part, options.operations, captures.lease, captures.wait_seconds
    )

    def rest(at: Offset) -> Iterable[pa.RecordBatch]:
        return bounded.changes(options, part, at, end)

    addresses = _in_turn(captures.addresses, part)
    return read(addresses, ticket, rest, access=captures.access, json=options.values == "json")


def _in_turn(addresses: tuple[str, ...], part: Part) -> tuple[str, ...]:
    """Return the addresses rotated by the part's number, which spreads the load."""
    first = part.number % len(addresses) if addresses else 0
    return addresses[first:] + addresses[:first]
