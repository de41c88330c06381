"""An ordered map from bytes to bytes on disk, for what a restart rebuilds anyway."""

from __future__ import annotations

import contextlib
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Final, NoReturn

from rocksdict import (
    BlockBasedOptions,
    DBCompressionType,
    Options,
    Rdict,
    RdictIter,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from ..errors import StoreError
from .batch import PairBatch
from .generation import Generation

_NEVER: Final = 1 << 30
"""A trigger that is never reached: nothing is compacted in the background, so writes never slow down."""

MOST_WINDOWS: Final = 16
"""Beyond this many, windows grow: RocksDB lists every family in a file at each change of them."""

LARGEST_WINDOW_BYTES: Final = 1 << 30
"""Windows don't grow beyond: in too many files each read takes long."""


class Store:
    """Windows of keys and values in one RocksDB, opened at the first write.

    No log is written, and what an earlier run left is not read: the sources have it all. Any thread
    may call any method but `close`, which comes last. All raise StoreError if the disk or RocksDB
    fails; the message says what failed and where.
    """

    def __init__(self, path: Path, *, window_bytes: int = 64 << 20, buffer_bytes: int = 96 << 20) -> None:
        """`buffer_bytes` bounds what is written and not yet in files: with a third of it, writing took
        twice as long, since it waited for the disk."""
        self.path = path
        self._window_bytes = window_bytes
        self._options = _options(buffer_bytes)
        self._write_options = WriteOptions()
        self._write_options.disable_wal = True  # type: ignore[assignment, method-assign]
        self._write_options.no_slowdown = True
        self._db: Rdict | None = None
        self._names = count(1)
        self.bytes = 0
        """Written and not dropped: in files, or about to be."""
        self._lock = Lock()  # guards what follows, and `bytes`
        self._windows: list[Generation] = []
        self._current: Generation | None = None
        self._closed = False

    def write(self, batch: PairBatch) -> Generation:
        """Write a batch into the current window, which is returned; begin a new one when it is full."""
        with self._lock:
            window = self._window()
            try:
                self._put(window, batch)
            except StoreError:
                raise
            except Exception as error:
                self._fail("can't be written", error)
            window.bytes += batch.bytes
            self.bytes += batch.bytes
            window.newest = max(window.newest, batch.newest)
            return window

    def get(self, window: Generation, key: bytes) -> bytes | None:
        """The value of a key, None if it isn't there."""
        try:
            value: bytes | None = window.family.get(key)
        except Exception as error:
            self._fail("can't be read", error)
        return value

    def iterate(self, window: Generation, lower: bytes, upper: bytes) -> Iterator:
        """The pairs of a window from `lower` up to but not including `upper`."""
        return Iterator(window, lower, upper, str(self.path))

    def end_window(self) -> None:
        """Begin a new window with the next write, unless there are many."""
        with self._lock:
            if len(self._windows) < MOST_WINDOWS:
                self._current = None

    def flush(self) -> None:
        """Write what is in buffers to files. Not while another thread drops windows."""
        with self._lock:
            windows = self._windows[:]
        for window in windows:
            try:
                window.family.flush(wait=True)
            except Exception as error:
                self._fail("can't be written", error)

    def ended(self) -> list[Generation]:
        """The windows that nothing is written to any more, oldest first."""
        with self._lock:
            return [window for window in self._windows if window is not self._current]

    def drop(self, window: Generation) -> None:
        """Drop a window that has ended. Its files go once nobody reads it."""
        with self._lock:
            assert self._db is not None
            assert window is not self._current
            self._windows.remove(window)
            self.bytes -= window.bytes
        try:
            self._db.drop_column_family(window.name)
        except Exception as error:
            self._fail(f"can't drop {window.name}", error)

    def close(self) -> None:
        """Let RocksDB go. The files stay until the scratch directory is wiped. Safe to repeat."""
        with self._lock:
            windows, self._windows = self._windows, []
            self._current = None
            self._closed = True
            if self._db is None:
                return
            with contextlib.suppress(Exception):  # a failed disk fails here again
                for window in windows:  # else closing would flush them
                    self._db.drop_column_family(window.name)
                self._db.close()
            self._db = None

    def _put(self, window: Generation, batch: PairBatch) -> None:
        assert self._db is not None
        for _ in range(10):
            rocks = WriteBatch(raw_mode=True)
            rocks.set_default_column_family(window.handle)
            for key, value in batch.pairs:
                rocks[key] = value
            try:
                self._db.write(rocks, self._write_options)
            except Exception as error:
                if "Write stall" not in str(error):
                    raise
                # All buffers are full. Writing would wait for the disk with the interpreter's lock
                # held; flushing waits without it.
                window.family.flush(wait=True)
            else:
                return
        raise StoreError(f"store {self.path}: the disk doesn't keep up, ten flushes didn't make room")

    def _window(self) -> Generation:
        """The window to write to. Under the lock."""
        if self._closed:
            raise StoreError(f"store {self.path} is closed")
        window = self._current
        if window is not None and window.bytes < self._limit():
            return window
        try:
            if window is not None:
                window.family.flush(wait=False)
            if self._db is None:
                self._db = Rdict(str(self.path), self._options)
            name = f"window-{next(self._names)}"
            family = self._db.create_column_family(name, self._options)
            window = Generation(name, family, self._db.get_column_family_handle(name))
        except Exception as error:
            self._fail("can't begin a window", error)
        self._current = window
        self._windows.append(window)
        return window

    def _limit(self) -> int:
        return min(max(self._window_bytes, self.bytes // MOST_WINDOWS), LARGEST_WINDOW_BYTES)

    def _fail(self, what: str, error: Exception) -> NoReturn:
        if "No space left on device" in str(error):
            what = "has no space left on its disk"
        raise StoreError(f"store {self.path} {what}: {error}") from error


def _options(buffer_bytes: int) -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_disable_auto_compactions(True)
    options.set_level_zero_slowdown_writes_trigger(_NEVER)
    options.set_level_zero_stop_writes_trigger(_NEVER)
    options.set_write_buffer_size(buffer_bytes // 4)
    options.set_max_write_buffer_number(4)
    options.set_db_write_buffer_size(buffer_bytes)
    options.set_compression_type(DBCompressionType.none())
    options.set_stats_dump_period_sec(0)
    options.set_keep_log_file_num(1)
    table = BlockBasedOptions()
    table.disable_cache()  # a block is read once
    options.set_block_based_table_factory(table)
    return options


class Iterator:
    """The pairs of a window from `lower` up to but not including `upper`, in key order.

    Raises StoreError where RocksDB can't read on: its iterators just become invalid then, so that
    a plain loop over a damaged file ends early and silently.
    """

    __slots__ = ("_iterator", "_options", "_path")

    def __init__(self, window: Generation, lower: bytes, upper: bytes, path: str) -> None:
        options = ReadOptions()
        options.set_iterate_upper_bound(upper)
        self._options = options  # RocksDB keeps a pointer into it
        self._path = path
        self._iterator: RdictIter = window.family.iter(options)
        self._iterator.seek(lower)

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> tuple[bytes, bytes]:
        iterator = self._iterator
        if not iterator.valid():
            try:
                iterator.status()
            except Exception as error:
                raise StoreError(f"store {self._path} can't be read: {error}") from error
            raise StopIteration
        pair = iterator.key(), iterator.value()
        iterator.next()
        return pair
