"""The catalog's changes in a file, so that it can be restored as of any checkpoint.

The file is a sequence of records: the size and the CRC-32 of the content, then the content as MessagePack.
The first one is the `_Head`; each other one is an `_Entry`, in order of its commit ts. A record that ends
after the file's end wasn't complete when its process died: its statements come again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct as Packing
from typing import BinaryIO, Final
from zlib import crc32

import msgspec
from msgspec import Struct

from ... import failpoint
from ...codec.mysql.known_table import KnownTable
from ...errors import StoreError
from ...events import Ts
from ...store import disk
from .catalog import Catalog, CatalogChange

log = logging.getLogger("tidemill.mounter")

COMPACT_BYTES: Final = 1 << 20
"""Size below which the file isn't compacted."""
_FRAME: Final = Packing("<II")
_VERSION: Final = 1
_REMOVE: Final = "remove it; a table is then loaded again if a statement on it needs its definition"

_encode = msgspec.msgpack.Encoder().encode


class _Head(Struct, frozen=True):
    version: int
    source: str
    """Identity of the source."""
    base_ts: Ts = 0
    """Changes up to this ts are in one entry: the catalog can't be restored as of an earlier ts."""


class Later(Struct, frozen=True):
    """A definition that a table had from `ts` on, when the log was read before.

    That of a table that was loaded there doesn't come again, and a target that is ahead has the table.
    """

    ts: Ts
    known: KnownTable


class _Entry(Struct, frozen=True):
    ts: Ts
    change: CatalogChange
    later: tuple[Later, ...] = ()
    """Set where the catalog was restored: the definitions in entries that were removed then."""


class History:
    """The file of one source's catalog. `acknowledged` may be called from any thread."""

    def __init__(self, path: Path, source: str, passed: Ts = 0) -> None:
        """`passed` is the ts of the last noted change that a target has passed: a file without it is older
        than the target, and not used."""
        self.path = path
        self.later: list[Later] = []
        """Definitions after the ts that was restored, in their order."""
        self._source = source
        self._passed = passed
        self._acknowledged: Ts = 0
        self._base_ts: Ts = 0
        self._compacted_bytes = 0
        self._bytes = 0
        self._file: BinaryIO | None = None

    def restore(self, ts: Ts) -> Catalog:
        """Return the catalog as of `ts`, and remove later changes, which come again; 0 begins a new file.

        The catalog is empty if the file is missing or outdated, or has only later changes. Raises StoreError
        if the file is damaged or can't be read or written.
        """
        try:
            with self._doing("read"):
                content = self.path.read_bytes() if ts and self.path.exists() else b""
            catalog, end = self._replay(content, ts)
            with self._doing("write"):
                if end:
                    self._open(end)
                    if self.later:
                        self._write(_record(_Entry(ts, CatalogChange(), tuple(self.later))))
                else:
                    self._begin(CatalogChange(), ts)
        except StoreError:
            self.close()
            raise
        return catalog

    def as_of(self, ts: Ts) -> Catalog:
        """Return the catalog as of `ts`, and leave the file as it is; empty as `restore` says.

        Raises StoreError if the file is damaged or can't be read.
        """
        with self._doing("read"):
            content = self.path.read_bytes() if self.path.exists() else b""
        return self._replay(content, ts)[0]

    def append(self, changes: Sequence[tuple[Ts, CatalogChange]]) -> None:
        """Append changes durably, empty ones too. Raises StoreError."""
        records = b"".join(_record(_Entry(ts, change)) for ts, change in changes)
        with self._doing("write"):
            self._write(records)
            if self._bytes > max(COMPACT_BYTES, 2 * self._compacted_bytes):
                self._compact()

    def _write(self, records: bytes) -> None:
        assert self._file is not None
        self._file.write(records)
        self._file.flush()
        failpoint.reach("definitions.written")
        os.fsync(self._file.fileno())
        self._bytes += len(records)

    def acknowledged(self, ts: Ts) -> None:
        """Note that the catalog isn't needed as of a ts below `ts` any more."""
        self._acknowledged = ts

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _replay(self, content: bytes, ts: Ts) -> tuple[Catalog, int]:
        """Return the catalog after the changes up to `ts`, and the end of the last one; 0 for a new file."""
        records = _records(content, self.path)
        head = next(records, (None, 0))[0]
        if not isinstance(head, _Head):
            return Catalog(), 0
        if head.version != _VERSION:
            raise StoreError(f"{self.path} is of version {head.version}, not {_VERSION}: {_REMOVE}")
        if head.source != self._source:
            # A new feed began at another server, and then a late commit told of an earlier beginning.
            log.warning(
                "%s is of %s, not of %s, and its definitions are not used: a table is loaded again if a "
                "statement on it needs its definition",
                self.path,
                head.source,
                self._source,
            )
            return Catalog(), 0
        if head.base_ts > ts:
            log.warning(
                "%s begins at ts %d, after the checkpoint's %d: a table is loaded again if a statement on it "
                "needs its definition",
                self.path,
                head.base_ts,
                ts,
            )
            return Catalog(), 0
        catalog = Catalog()
        last_ts = self._base_ts = head.base_ts
        known_later: dict[Later, None] = {}
        end = len(_record(head))
        for entry, offset in _readable(records, ts):
            if entry.ts > ts:
                known = [one.known for one in entry.change.tables if one.known is not None]
                known_later |= {Later(entry.ts, one): None for one in known}
                continue
            catalog.apply(entry.change)
            known_later = _valid(known_later, entry)
            last_ts, end = entry.ts, offset
        if last_ts < self._passed:
            log.warning(
                "%s ends at ts %d, and a target has passed the schema change of ts %d: the data directory is "
                "older than the target, and the definitions in it are not used; a table is loaded again if a "
                "statement on it needs its definition",
                self.path,
                last_ts,
                self._passed,
            )
            return Catalog(), 0
        self.later = sorted(known_later, key=lambda later: later.ts)
        return catalog, end

    def _open(self, end: int) -> None:
        self.close()
        self._file = self.path.open("r+b")
        self._file.truncate(end)
        self._file.seek(end)
        os.fsync(self._file.fileno())
        self._bytes = end

    def _begin(
        self, base: CatalogChange, ts: Ts, later: bytes = b"", definitions: tuple[Later, ...] = ()
    ) -> None:
        """Replace the file by one whose first entry is the whole catalog as of `ts`."""
        content = _record(_Head(_VERSION, self._source, ts))
        if base != CatalogChange():
            content += _record(_Entry(ts, base, definitions))
        self._compacted_bytes = len(content)
        self._base_ts = ts
        disk.make_private(self.path.parent)
        disk.replace(self.path, content + later)
        self._open(len(content) + len(later))

    def _compact(self) -> None:
        """Join the changes that aren't needed one by one any more."""
        ts = self._acknowledged
        if ts <= self._base_ts:
            return
        content = self.path.read_bytes()
        catalog = Catalog()
        later = len(content)
        definitions: dict[Later, None] = {}
        for entry, end in _records(content, self.path):
            if isinstance(entry, _Entry):
                if entry.ts > ts:
                    later = end - len(_record(entry))
                    break
                catalog.apply(entry.change)
                definitions = _valid(definitions, entry)
        self._begin(catalog.whole(), ts, content[later:], tuple(definitions))

    def _doing(self, what: str) -> _Doing:
        return _Doing(f"can't {what} {self.path}")


def _readable(records: Iterator[tuple[_Head | _Entry, int]], ts: Ts) -> Iterator[tuple[_Entry, int]]:
    """Yield entries with their ends, up to a damaged one after `ts`. Raises StoreError for an earlier one."""
    is_later = False
    try:
        for entry, end in records:
            assert isinstance(entry, _Entry)
            is_later = entry.ts > ts
            yield entry, end
    except StoreError:
        if not is_later:
            raise


def _valid(later: dict[Later, None], entry: _Entry) -> dict[Later, None]:
    """Return the later definitions after an entry, as keys: those of tables that it changes are of no use."""
    changed = {(one.schema, one.table) for one in entry.change.tables}
    later = later | dict.fromkeys(entry.later)
    return {
        one: None
        for one in later
        if one.ts > entry.ts or (one.known.table.schema, one.known.table.name) not in changed
    }


class _Doing:
    """Raises StoreError for OSError."""

    def __init__(self, failed: str) -> None:
        self._failed = failed

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise StoreError(f"{self._failed}: {error.strerror}") from error


def _record(content: _Head | _Entry) -> bytes:
    encoded = _encode(content)
    return _FRAME.pack(len(encoded), crc32(encoded)) + encoded


def _records(content: bytes, path: Path) -> Iterator[tuple[_Head | _Entry, int]]:
    """Yield the records, each with its end. Raises StoreError for a damaged one."""
    offset = 0
    kind: type[_Head | _Entry] = _Head
    while offset + _FRAME.size <= len(content):
        size, checksum = _FRAME.unpack_from(content, offset)
        start, end = offset + _FRAME.size, offset + _FRAME.size + size
        if end > len(content) or not any(content[offset:]):  # some disks fill with zeros what wasn't written
            return
        encoded = content[start:end]
        try:
            if crc32(encoded) != checksum:
                raise ValueError("wrong checksum")
            yield msgspec.msgpack.decode(encoded, type=kind), end
        except ValueError:
            raise StoreError(f"{path} is damaged at byte {offset}: {_REMOVE}") from None
        offset, kind = end, _Entry
