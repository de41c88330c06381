"""The sorter's yardsticks: bare rocksdict loops over the same changes, as fast as they can be made.

No actors, no merging of tables, no memory tier, no checksums: what the store itself allows Python.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
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
from .workload import Window

_encode = msgspec.msgpack.Encoder().encode
_decode_event = msgspec.msgpack.Decoder(KvChange).decode
_decode_block = msgspec.msgpack.Decoder(list[KvChange]).decode
_EVENT_KEY = Struct(">QQQ")


class Yardstick(Protocol):
    def write(self, window: Window, /) -> None: ...

    def fetch(self, tables: Iterable[int], above: Ts, up_to: Ts, /) -> int:
        """Read every change of the tables in (above, up_to] as KvChange in order; how many."""


class OnePut:
    """One put an event: uid, table, commit ts and so on as key, MessagePack as value."""

    def __init__(self, directory: Path) -> None:
        self._db = _open(directory)
        self._write_options = _write_options()

    def write(self, window: Window) -> None:
        encode, pack = _encode, _EVENT_KEY.pack
        for table, changes in window.tables.items():
            batch = WriteBatch(raw_mode=True)
            for c in changes:
                batch[pack(table, c.commit_ts, c.start_ts) + c.key] = encode(c)
            self._db.write(batch, self._write_options)

    def fetch(self, tables: Iterable[int], above: Ts, up_to: Ts) -> int:
        decode, pack = _decode_event, _EVENT_KEY.pack
        found = 0
        for table in tables:
            options = ReadOptions()
            options.set_iterate_upper_bound(pack(table, up_to + 1, 0))
            values = self._db.values(from_key=pack(table, above + 1, 0), read_opt=options)
            found += len([decode(value) for value in values])
        return found


class Blocks:
    """One put a table and window: the sorted changes as one MessagePack value."""

    def __init__(self, directory: Path) -> None:
        self._db = _open(directory)
        self._write_options = _write_options()

    def write(self, window: Window) -> None:
        batch = WriteBatch(raw_mode=True)
        for table, changes in window.tables.items():
            ordered = sorted(changes, key=_commit_ts)
            batch[_EVENT_KEY.pack(table, ordered[0].commit_ts, 0)] = _encode(ordered)
        self._db.write(batch, self._write_options)

    def fetch(self, tables: Iterable[int], above: Ts, up_to: Ts) -> int:
        decode, pack = _decode_block, _EVENT_KEY.pack
        found = 0
        for table in tables:
            options = ReadOptions()
            options.set_iterate_upper_bound(pack(table, up_to + 1, 0))
            values = self._db.values(from_key=pack(table, above + 1, 0), read_opt=options)
            found += sum([len(decode(value)) for value in values])
        return found


class Lists:
    """Lists in memory."""

    def __init__(self, _directory: Path) -> None:
        self._tables: dict[int, list[KvChange]] = {}

    def write(self, window: Window) -> None:
        for table, changes in window.tables.items():
            self._tables.setdefault(table, []).extend(changes)

    def fetch(self, tables: Iterable[int], _above: Ts, _up_to: Ts) -> int:
        found = 0
        for table in tables:
            changes = self._tables.pop(table, [])
            changes.sort(key=_commit_ts)
            found += len(changes)
        return found


YARDSTICKS: dict[str, Callable[[Path], Yardstick]] = {"one_put": OnePut, "blocks": Blocks, "lists": Lists}


def _commit_ts(change: KvChange) -> Ts:
    return change.commit_ts


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
