"""A map from bytes to bytes on disk that outlives its process, for what can be made again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

from rocksdict import (
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    Options,
    Rdict,
    WriteBatch,
    WriteOptions,
)

from ..errors import StoreError

_BITS: Final = 10
"""Bits of a bloom filter for each key: one key in a hundred that isn't there is looked for in a file."""
_CACHE_BYTES: Final = 64 << 20
_BUFFER_BYTES: Final = 16 << 20
"""Size of a buffer of writes; there are two."""
_BATCH: Final = 20_000
"""Number of pairs that are written at once: the write holds the interpreter's lock."""


class Map:
    """Keys and values in one RocksDB, in the order of the keys. Memory doesn't depend on their number.

    No log is written. A crash loses the last writes, always in their order: if a pair is there, so is every
    pair that was written before it. A directory that RocksDB can't open is emptied. Any thread, but `close`
    comes last. All raise StoreError if the disk or RocksDB fails.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._write_options: Final = WriteOptions()
        self._write_options.disable_wal = True  # type: ignore[assignment, method-assign]
        self._db: Rdict = self._opened()

    def _opened(self) -> Rdict:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with suppress(Exception):
                return Rdict(str(self.path), _options())
            if not self._is_locked():
                shutil.rmtree(self.path)
            return Rdict(str(self.path), _options())
        except Exception as error:
            self._fail("can't be opened", error)

    def _is_locked(self) -> bool:
        """Return True if another process, or another object of this one, has it open."""
        try:
            Rdict(str(self.path), _options()).close()
        except Exception as error:
            return "lock" in str(error).lower()
        return False

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key; None if it isn't there."""
        order = sorted(keys)  # of keys at random all lie in other blocks: they would take half as long again
        try:
            values: list[bytes | None] = self._db.get(order)  # type: ignore[arg-type, assignment]
        except Exception as error:
            self._fail("can't be read", error)
        if order == keys:
            return values
        found = dict(zip(order, values, strict=True))
        return [found[key] for key in keys]

    def pairs(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs whose keys begin with a prefix, in their order, each key without it."""
        try:
            pairs: Iterator[tuple[Any, Any]] = self._db.items(from_key=prefix)
            for key, value in pairs:
                if not key.startswith(prefix):
                    return
                yield key[len(prefix) :], value
        except Exception as error:
            self._fail("can't be read", error)

    def put(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        for start in range(0, len(keys), _BATCH):
            batch = WriteBatch(raw_mode=True)
            end = start + _BATCH
            for key, value in zip(keys[start:end], values[start:end], strict=True):
                batch.put(key, value)
            self._write(batch)

    def remove(self, keys: Sequence[bytes]) -> None:
        batch = WriteBatch(raw_mode=True)
        for key in keys:
            batch.delete(key)
        self._write(batch)

    def remove_prefix(self, prefix: bytes) -> None:
        """Remove the pairs whose keys begin with a prefix, which isn't all bytes 255."""
        stripped = prefix.rstrip(b"\xff")
        batch = WriteBatch(raw_mode=True)
        batch.delete_range(prefix, stripped[:-1] + bytes([stripped[-1] + 1]))
        self._write(batch)

    def close(self) -> None:
        """Write everything to files, and release them. Safe to repeat."""
        with suppress(Exception):  # what isn't written is made again
            self._db.flush(wait=True)
        with suppress(Exception):
            self._db.close()

    def _write(self, batch: WriteBatch) -> None:
        try:
            self._db.write(batch, self._write_options)
        except Exception as error:
            self._fail("can't be written", error)

    def _fail(self, what: str, error: Exception) -> NoReturn:
        raise StoreError(f"index {self.path} {what}: {error}") from error


def _options() -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(_BUFFER_BYTES)
    options.set_stats_dump_period_sec(0)
    options.set_keep_log_file_num(1)
    table = BlockBasedOptions()
    table.set_block_cache(Cache(_CACHE_BYTES))
    table.set_bloom_filter(_BITS, block_based=False)
    # Filters and indexes are in the cache, in parts. Otherwise all of them are in memory: 1.3 bytes a key.
    table.set_index_type(BlockBasedIndexType.two_level_index_search())
    table.set_partition_filters(True)
    table.set_cache_index_and_filter_blocks(True)
    options.set_block_based_table_factory(table)
    return options
