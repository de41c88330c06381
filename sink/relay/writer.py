"""Writing of a relay."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import BinaryIO

from ...errors import StoreError
from ...events import Item
from ...failpoint import reach
from ...store.disk import lock, sync
from .frame import Content, header, mark
from .options import RelayOptions
from .reader import Relay
from .record import RecordWriter

LOCK = "lock"


class RelayWriter:
    """Appends items in groups. A group is durable, and can be read, once it is marked.

    Methods raise StoreError; after that it must be closed.
    """

    def __init__(self, options: RelayOptions) -> None:
        """Open the directory, and remove what an interrupted group left there."""
        self._options = options
        self._directory = directory = options.directory
        self._file: BinaryIO | None = None
        self._size = 0
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._lock = lock(directory / LOCK)
        except BlockingIOError:
            raise StoreError(f"relay {directory}: another feed or a replay uses it") from None
        except OSError as error:
            raise StoreError(f"relay {directory}: {error.strerror}") from error
        try:
            relay = Relay(directory)
            for path in relay.unfinished:
                path.unlink()
        except BaseException:
            self.close()
            raise
        self._contents = relay.contents
        """Finished files."""
        self.source = relay.source
        self.end_ts = relay.end_ts
        """Everything up to this ts is durable here."""
        self.checkpoint = relay.contents[-1].checkpoint if relay.contents else ""
        """Text of the last mark."""
        self._is_first = False  # of the next file

    def begin(self, source: str, ts: int, *, is_empty: bool = False) -> None:
        """Remove everything; what is appended next comes after `ts`.

        `is_empty` is True if a target that has nothing can be replayed into.
        """
        try:
            self._close_file()
            for content in self._contents:
                content.path.unlink()
        except OSError as error:
            raise self._failed(error) from error
        self._contents = []
        self.source, self.end_ts, self.checkpoint, self._is_first = source, ts, "", is_empty

    def append(self, items: Iterable[Item]) -> None:
        """Write items, of which the last one may be a part of a transaction."""
        file = self._open_file()
        frames = [data for item in items for data in self._records.frames(item)]
        data = b"".join(frames)
        try:
            file.write(data)
        except OSError as error:
            raise self._failed(error) from error
        self._size += len(data)

    def mark(self, ts: int, checkpoint: str = "") -> None:
        """Make everything durable: it is all that there is up to `ts`."""
        file = self._open_file()
        data = mark(ts, checkpoint)
        try:
            file.write(data)
            file.flush()
            reach("relay.before_sync")
            os.fsync(file.fileno())
            reach("relay.synced")
            self._size += len(data)
            self.end_ts, self.checkpoint = ts, checkpoint
            if self._size >= self._options.segment_bytes:
                self._close_file()
        except OSError as error:
            raise self._failed(error) from error

    def purge(self, ts: int) -> None:
        """Remove files with nothing above `ts`, except the newest `keep_bytes`."""
        contents = self._contents
        kept = self._size + sum(content.length for content in contents)
        gone = 0
        while gone < len(contents):
            content = contents[gone]
            kept -= content.length
            if content.end_ts > ts or kept < self._options.keep_bytes:
                break
            try:
                content.path.unlink()
            except OSError as error:
                raise self._failed(error) from error
            gone += 1
        del contents[:gone]

    def close(self) -> None:
        """Release the directory; a group without a mark is lost. Safe to repeat."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # a full disk: there is no mark either
                file.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    # --- files

    def _open_file(self) -> BinaryIO:
        if self._file is None:
            self._records = RecordWriter()
            self._path = self._directory / f"{self._next_number():012}.relay"
            self._begun = self.end_ts, self._is_first
            self._is_first = False
            try:
                self._file = self._path.open("wb")
                self._size = self._file.write(header(self.source, self.end_ts, is_first=self._begun[1]))
                sync(self._directory)
            except OSError as error:
                raise self._failed(error) from error
        return self._file

    def _next_number(self) -> int:
        return int(self._contents[-1].path.stem) + 1 if self._contents else 1

    def _close_file(self) -> None:
        """Finish the file after a mark."""
        file, self._file = self._file, None
        if file is not None:
            file.close()
            self._contents.append(
                Content(self._path, self.source, *self._begun, self.end_ts, self.checkpoint, self._size)
            )
            self._size = 0

    def _failed(self, error: OSError) -> StoreError:
        return StoreError(f"relay {self._directory}: {error.strerror}: make room, or remove the relay")
