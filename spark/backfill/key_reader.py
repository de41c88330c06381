"""Keys out of the packets of rows."""

from __future__ import annotations

from collections.abc import Iterator

from ...codec.mysql.result_rows import (
    HEADER_BYTES,
    LONGEST_PAYLOAD,
    bitmap_bytes,
    counted,
    end_of_row,
    number_format,
    unsplit,
)
from ...events import Table
from .keys import Key


class KeyReader:
    """Reads the keys of rows, which are integers, out of packets."""

    def __init__(self, table: Table) -> None:
        self._bitmap_bytes = bitmap_bytes(len(table.columns))
        # Key columns usually come first, so most of a row isn't read.
        self._formats = [number_format(column) for column in table.columns[: max(table.key) + 1]]
        self._order = table.key

    def rows(self, packets: bytes) -> Iterator[tuple[Key, int, int]]:
        """Yield the key of each row, and the row's begin and end."""
        start = 0
        while start < len(packets):
            stop, at = end_of_row(packets, start), start + HEADER_BYTES
            if stop - start > HEADER_BYTES + LONGEST_PAYLOAD:  # of several packets
                values = self._values(unsplit(packets[start:stop], HEADER_BYTES)[0], 0)
            else:
                values = self._values(packets, at)
            yield tuple([values[index] for index in self._order]), start, stop
            start = stop

    def _values(self, data: bytes, at: int) -> list[int]:
        """Return the numbers of a row up to the key's last one; 0 for any other value."""
        at += 1
        nulls = int.from_bytes(data[at : at + self._bitmap_bytes], "little") >> 2
        at += self._bitmap_bytes
        values = []
        for number, packing in enumerate(self._formats):
            value = 0
            if not nulls >> number & 1:
                if packing is not None:
                    (value,) = packing.unpack_from(data, at)
                    at += packing.size
                else:
                    size, at = counted(data, at)
                    at += size
            values.append(value)
        return values
