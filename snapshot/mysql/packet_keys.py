"""Keys of rows, read out of the packets in which a server sends the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...codec.mysql.result_rows import (
    HEADER_BYTES,
    LONGEST_PAYLOAD,
    bitmap_bytes,
    converter,
    counted,
    end_of_row,
    number_format,
    row_starts,
    unsplit,
)
from ...events import OrderedKey, Table, key_order


class PacketKeys:
    """Reads the keys of a table whose keys have an order. Columns after the key's last one aren't read."""

    def __init__(self, table: Table) -> None:
        order = key_order(table)
        assert order is not None
        self._order: Final = order
        self._bitmap_bytes = bitmap_bytes(len(table.columns))
        # Key columns usually come first, so most of a row isn't read.
        self._columns = [
            (number_format(column), converter(column) if index in table.key else None)
            for index, column in enumerate(table.columns[: max(table.key) + 1])
        ]

    def rows(self, packets: bytes) -> Iterator[tuple[OrderedKey, int, int]]:
        """Yield the key of each row, and the row's begin and end."""
        start = 0
        while start < len(packets):
            stop = end_of_row(packets, start)
            yield self._key(packets, start, stop), start, stop
            start = stop

    def first(self, packets: bytes) -> OrderedKey:
        return self._key(packets, 0, end_of_row(packets, 0))

    def last(self, packets: bytes) -> tuple[OrderedKey, int]:
        """Return the key of the last row, and the number of rows."""
        starts = row_starts(packets)
        return self._key(packets, starts[-2], starts[-1]), len(starts) - 1

    def _key(self, packets: bytes, start: int, stop: int) -> OrderedKey:
        if stop - start > HEADER_BYTES + LONGEST_PAYLOAD:  # of several packets
            return self._order(self._values(unsplit(packets[start:stop], HEADER_BYTES)[0], 0))
        return self._order(self._values(packets, start + HEADER_BYTES))

    def _values(self, data: bytes, offset: int) -> list[object]:
        """Return the values of a row up to the key's last one; None for those that aren't the key's."""
        offset += 1
        nulls = int.from_bytes(data[offset : offset + self._bitmap_bytes], "little") >> 2
        offset += self._bitmap_bytes
        values: list[object] = []
        for number, (packing, convert) in enumerate(self._columns):
            value = None
            if not nulls >> number & 1:
                if packing is not None:
                    (value,) = packing.unpack_from(data, offset)
                    offset += packing.size
                else:
                    size, offset = counted(data, offset)
                    if convert is not None:
                        value = convert(data[offset : offset + size])
                    offset += size
            values.append(value)
        return values
