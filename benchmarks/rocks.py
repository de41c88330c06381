"""The sorter's yardsticks: bare rocksdict loops over the same changes, as fast as possible.

Without actors, merging of tables, memory tier and checksums: the speed that the store itself allows in
Python.
"""

from __future__ import annotations

import os
import shutil
from collections import deque
from collections.abc import Callable, Iterable
from operator import attrgetter
from pathlib import Path
from struct import Struct
from typing import Protocol

import msgspec
from rocksdict import (
    BlockBasedOptions,
    DBCompressionType,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from ..events import KvChange, Ts
from ..testing.workload import Window

_encode = msgspec.msgpack.Encoder().encode
_decode_event = msgspec.msgpack.Decoder(KvChange).decode
_decode_block = msgspec.msgpack.Decoder(list[KvChange]).decode
_EVENT_KEY = Struct(">QQQ")
_commit_ts = attrgetter("commit_ts")


class Yardstick(Protocol):
    def write(self, window: Window, /) -> None: ...

    def fetch(self, tables: Iterable[int], above: Ts, up_to: Ts, /) -> int:
        """Read every change of the tables in (above, up_to] as KvChange in order; return their number."""

    def close(self) -> None: ...


class OnePut:
    """One put per event: uid, table, commit ts and so on as key, MessagePack as value."""

    def __init__(self, directory: Path) -> None:
        self._db = _open(directory)
        self._write_options = _write_options()

    def write(self, window: Window) -> None:
        encode, pack = _encode, _EVENT_KEY.pack
        batch = WriteBatch(raw_mode=True)
        for table, changes in window.tables.items():
            for c in changes:
                batch[pack(table, c.commit_ts, c.start_ts) + c.key] = encode(c)
        self._db.write(batch, self._write_options)

    def fetch(self, tables: Iterable[int], above: Ts, up_to: Ts) -> int:
        decode, pack = _decode_event, _EVENT_KEY.pack
        count = 0
        for table in tables:
            options = ReadOptions()
            options.set_iterate_upper_bound(pack(table, up_to + 1, 0))
            values = self._db.values(from_key=pack(table, above + 1, 0), read_opt=options)
            count += len([decode(value) for value in values])
        return count

    def close(self) -> None:
        self._db.close()


class Blocks:
    """One put per table and window: the sorted changes as one MessagePack value."""

    def __init__(self, directory: Path) -> None:
        self._db = _open(directory)
        self._write_options = _write_options()

    def write(self, window: Window) -> None:
        batch = WriteBatch(raw_mode=True)
        for table, changes in window.tables.items():
            changes.sort(key=_commit_ts)
            batch[_EVENT_KEY.pack(table, changes[0].commit_ts, 0)] = _encode(changes)
        self._db.write(batch, self._write_options)

    def fetch(self, tables: Iterable[int], above: Ts, up_to: Ts) -> int:
        decode, pack = _decode_block, _EVENT_KEY.pack
        count = 0
        for table in tables:
            options = ReadOptions()
            options.set_iterate_upper_bound(pack(table, up_to + 1, 0))
            values = self._db.values(from_key=pack(table, above + 1, 0), read_opt=options)
            count += sum([len(decode(value)) for value in values])
        return count

    def close(self) -> None:
        self._db.close()


class Files:
    """Blocks with an index in memory, appended to a plain file."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(directory / "blocks", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self._end = 0
        self._index: dict[int, deque[tuple[Ts, int, int]]] = {}

    def write(self, window: Window) -> None:
        buffers = []
        offset = self._end
        for table, changes in window.tables.items():
            changes.sort(key=_commit_ts)
            block = _encode(changes)
            buffers.append(block)
            self._index.setdefault(table, deque()).append((changes[0].commit_ts, offset, len(block)))
            offset += len(block)
        os.pwrite(self._descriptor, b"".join(buffers), self._end)
        self._end = offset

    def fetch(self, tables: Iterable[int], _above: Ts, up_to: Ts) -> int:
        decode, descriptor = _decode_block, self._descriptor
        count = 0
        for table in tables:
            index = self._index.get(table)
            while index and index[0][0] <= up_to:
                _, offset, size = index.popleft()
                count += len(decode(os.pread(descriptor, size, offset)))
        return count

    def close(self) -> None:
        os.close(self._descriptor)


class Lists:
    """Lists in memory."""

    def __init__(self, _directory: Path) -> None:
        self._tables: dict[int, list[KvChange]] = {}

    def write(self, window: Window) -> None:
        for table, changes in window.tables.items():
            self._tables.setdefault(table, []).extend(changes)

    def fetch(self, tables: Iterable[int], _above: Ts, _up_to: Ts) -> int:
        count = 0
        for table in tables:
            changes = self._tables.pop(table, [])
            changes.sort(key=_commit_ts)
            count += len(changes)
        return count

    def close(self) -> None:
        self._tables.clear()


YARDSTICKS: dict[str, Callable[[Path], Yardstick]] = {
    "one_put": OnePut,
    "blocks": Blocks,
    "files": Files,
    "lists": Lists,
}


def _open(directory: Path) -> Rdict:
    shutil.rmtree(directory, ignore_errors=True)
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_disable_auto_compactions(True)
    options.set_write_buffer_size(64 << 20)
    options.set_max_write_buffer_number(6)
    options.set_compression_type(DBCompressionType.none())
    table = BlockBasedOptions()
    table.set_block_size(32 << 10)
    options.set_block_based_table_factory(table)
    return Rdict(str(directory), options)


def _write_options() -> WriteOptions:
    options = WriteOptions()
    options.disable_wal = True  # type: ignore[assignment, method-assign]
    return options
