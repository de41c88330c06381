"""A task's changes from captures, as a replacement of `bounded`."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import replace

import pyarrow as pa

from ...events import Item
from ..envelope import Decoder
from ..offsets.offset import Offset
from ..option_values import OPERATIONS
from ..read import bounded
from ..read.options import ReadOptions
from ..read.parts import WHOLE, Part
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


def change_items(
    options: ReadOptions, part: Part, start: Offset, end: Offset, captures: Captures
) -> Generator[list[Item]]:
    """Yield the same as `bounded.change_items`: for a binlog, also rows of other parts."""
    every = replace(options, values="none", operations=OPERATIONS)
    decoder = Decoder()
    with closing(changes(every, part if options.reading.by_ts else WHOLE, start, end, captures)) as batches:
        for batch in batches:
            yield decoder.decode(batch)


def _in_turn(addresses: tuple[str, ...], part: Part) -> tuple[str, ...]:
    """Return the addresses rotated by the part's number, which spreads the load."""
    first = part.number % len(addresses) if addresses else 0
    return addresses[first:] + addresses[:first]
