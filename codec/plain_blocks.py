"""Blocks in Python, for installations without the native module: the same rules, the same bytes on disk."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice, pairwise
from operator import lt
from struct import Struct
from typing import Final
from zlib import crc32

from ..events import PUT, Block, KvChange

_HEAD: Final = Struct("<4sIQQ")
_ENTRY: Final = Struct("<QQQIIIIII")
_MAGIC: Final = b"TMB1"
_BEFORE_CRC: Final = 8
_LIMIT: Final = 1 << 32
_ABOVE: Final = 1 << 64
MAX_KEYSPACE: Final = (1 << 31) - 1

Place = tuple[int, int, int, bytes, int]
"""Commit ts, start ts, op, key, keyspace: the order, and what makes two changes the same."""


class PlainBlock:
    """See `Block`."""

    __slots__ = ("_bytes", "_contents", "_places")

    def __init__(self, places: list[Place], contents: list[tuple[bytes, bytes, int]]) -> None:
        """`contents` are the value, old value and origin of each change; both lists are this block's now."""
        self._places = places
        self._contents = contents
        self._bytes: int | None = None

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int) -> KvChange:
        commit_ts, start_ts, op, key, _ = self._places[index]
        value, old_value, origin = self._contents[index]
        return KvChange(commit_ts, start_ts, op, key, value, old_value, origin)

    def __iter__(self) -> Iterator[KvChange]:
        for (commit_ts, start_ts, op, key, _), content in zip(self._places, self._contents, strict=True):
            yield KvChange(commit_ts, start_ts, op, key, *content)

    @property
    def first_ts(self) -> int:
        return self._places[0][0] if self._places else 0

    @property
    def last_ts(self) -> int:
        return self._places[-1][0] if self._places else 0

    def find(self, commit_ts: int, start_ts: int = 0, op: int = 0, key: bytes = b"", /) -> int:
        return bisect_left(self._places, (commit_ts, start_ts, op, key, 0))

    def slice(self, start: int, stop: int, /) -> PlainBlock:
        if not 0 <= start <= stop <= len(self):
            raise IndexError(f"no part from {start} to {stop}: the block has {len(self)} changes")
        return PlainBlock(self._places[start:stop], self._contents[start:stop])

    def compact(self) -> PlainBlock:
        return self

    def keyspaces(self) -> set[int]:
        return {place[4] for place in self._places}

    def without(self, keyspaces: Set[int], /) -> PlainBlock:
        return self._only([n for n, place in enumerate(self._places) if place[4] not in keyspaces])

    def by_prefix(self, size: int, /) -> dict[bytes, PlainBlock]:
        if size < 0:
            raise ValueError("a prefix has 0 bytes or more")
        numbers: dict[bytes, list[int]] = {}
        for n, place in enumerate(self._places):
            numbers.setdefault(place[3][:size], []).append(n)
        if len(numbers) == 1:
            return dict.fromkeys(numbers, self)
        return {prefix: self._only(numbers[prefix]) for prefix in sorted(numbers)}

    def _only(self, numbers: list[int]) -> PlainBlock:
        return PlainBlock([self._places[n] for n in numbers], [self._contents[n] for n in numbers])

    def to_bytes(self) -> bytes:
        entries: list[bytes] = []
        contents: list[bytes] = []
        offset = 0
        for (commit_ts, start_ts, op, key, keyspace), (value, old_value, origin) in zip(
            self._places, self._contents, strict=True
        ):
            if offset >= _LIMIT:
                raise ValueError("a block of more than 4 GiB can't be written: cut it")
            sizes = len(key), len(value), len(old_value)
            entries.append(_ENTRY.pack(commit_ts, start_ts, origin, 0, offset, *sizes, keyspace << 1 | op))
            contents += key, value, old_value
            offset += sum(sizes)
        packed = b"".join((*entries, *contents))
        sizes_packed = _HEAD.pack(b"", 0, len(self), offset)[_BEFORE_CRC:]
        return _HEAD.pack(_MAGIC, crc32(packed, crc32(sizes_packed)), len(self), offset) + packed

    @staticmethod
    def from_bytes(data: bytes) -> PlainBlock:
        data = bytes(data)
        if len(data) < _HEAD.size:
            raise _damaged("it is too short")
        magic, crc, count, size = _HEAD.unpack_from(data)
        if magic != _MAGIC:
            raise _damaged("it is no block of this version")
        if crc != crc32(memoryview(data)[_BEFORE_CRC:]):
            raise _damaged("the checksum does not match")
        start = _HEAD.size + count * _ENTRY.size
        if start + size != len(data):
            raise _damaged("its sizes don't fit")
        places: list[Place] = []
        contents: list[tuple[bytes, bytes, int]] = []
        for entry in _ENTRY.iter_unpack(data[_HEAD.size : start]):
            commit_ts, start_ts, origin, chunk, offset, key, value, old_value, owner = entry
            if chunk or offset + key + value + old_value > size:
                raise _damaged("a change lies outside of it")
            offset += start
            ends = offset + key, offset + key + value, offset + key + value + old_value
            places.append((commit_ts, start_ts, owner & 1, data[offset : ends[0]], owner >> 1))
            contents.append((data[ends[0] : ends[1]], data[ends[1] : ends[2]], origin))
        if not _is_in_order(places):
            raise _damaged("its changes aren't in order")
        return PlainBlock(places, contents)

    @staticmethod
    def merge(blocks: Sequence[Block], keyspaces: Sequence[int] | None = None) -> PlainBlock:
        """See `codec.blocks.merge`."""
        if keyspaces is not None and len(keyspaces) != len(blocks):
            raise ValueError("each block has one keyspace")
        places: list[Place] = []
        contents: list[tuple[bytes, bytes, int]] = []
        for n, block in enumerate(blocks):
            if not isinstance(block, PlainBlock):
                raise TypeError("only blocks can be merged")
            if keyspaces is None:
                places += block._places
            elif not 0 <= keyspaces[n] <= MAX_KEYSPACE:
                raise ValueError(f"keyspace: {keyspaces[n]} isn't from 0 to {MAX_KEYSPACE}")
            else:
                places += [(*place[:4], keyspaces[n]) for place in block._places]
            contents += block._contents
        return _in_order(places, contents)

    @property
    def held_bytes(self) -> int:
        return self.bytes

    @property
    def bytes(self) -> int:
        if self._bytes is None:
            self._bytes = len(self._places) * _ENTRY.size + sum(
                [len(place[3]) + len(content[0]) + len(content[1])
                 for place, content in zip(self._places, self._contents, strict=True)]
            )  # fmt: skip
        return self._bytes


class PlainBuilder:
    """See `BlockBuilder`."""

    __slots__ = ("_contents", "_places", "bytes")

    def __init__(self) -> None:
        self._places: list[Place] = []
        self._contents: list[tuple[bytes, bytes, int]] = []
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._places)

    def add(
        self,
        commit_ts: int,
        start_ts: int,
        op: int,
        key: bytes,
        value: bytes,
        old_value: bytes = b"",
        origin: int = 0,
        /,
    ) -> None:
        is_number = 0 <= commit_ts < _ABOVE and 0 <= start_ts < _ABOVE and 0 <= origin < _ABOVE
        is_content = type(key) is type(value) is type(old_value) is bytes
        if not (is_number and is_content and 0 <= op <= 1):
            raise _refused(
                (commit_ts, start_ts, origin), op, {"key": key, "value": value, "old value": old_value}
            )
        size = len(key) + len(value) + len(old_value)
        if size >= _LIMIT:
            raise TypeError("key, value and old value: bytes of less than 4 GiB")
        self._places.append((commit_ts, start_ts, op, key, 0))
        self._contents.append((value, old_value, origin))
        self.bytes += _ENTRY.size + size

    def add_rows(self, ts: int, keys: list[bytes], values: list[bytes], /) -> None:
        for key, value in zip(keys, values, strict=True):
            self.add(ts, ts, PUT, key, value)

    def extend(self, changes: Iterable[KvChange], /) -> None:
        for c in changes:
            self.add(c.commit_ts, c.start_ts, c.op, c.key, c.value, c.old_value, c.region_id)

    def take(self) -> PlainBlock:
        block = _in_order(self._places, self._contents)
        self._places, self._contents, self.bytes = [], [], 0
        return block


def _in_order(places: list[Place], contents: list[tuple[bytes, bytes, int]]) -> PlainBlock:
    if not _is_in_order(places):
        order = sorted(range(len(places)), key=places.__getitem__)
        order = order[:1] + [b for a, b in pairwise(order) if places[a] != places[b]]
        places, contents = [places[n] for n in order], [contents[n] for n in order]
    return PlainBlock(places, contents)


def _is_in_order(places: list[Place]) -> bool:
    return all(map(lt, places, islice(places, 1, None)))


def _refused(numbers: tuple[int, ...], op: int, contents: Mapping[str, object]) -> Exception:
    for number in numbers:
        if not 0 <= number < _ABOVE:
            return OverflowError(f"{number} isn't a number of 64 bits without a sign")
    for name, content in contents.items():
        if type(content) is not bytes:
            return TypeError(f"{name}: bytes of less than 4 GiB")
    return ValueError(f"op: {op} is neither DELETE (0) nor PUT (1)")


def _damaged(why: str) -> ValueError:
    return ValueError(f"a block can't be read: {why}")
