"""The stage that writes a relay."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from ...chain import Element, Lag, Mark, Stage, StageContext
from ...errors import SinkError, StoreError
from ...events import Checkpoint, Item
from ...store.disk import replace
from .options import RelayOptions
from .writer import RelayWriter

log = logging.getLogger("tidemill.sink")

_OWNER: Final = "owner"
"""File that names the sink and the feed."""


class RelayStage(Stage):
    """Writes all items to a relay before the sink gets them. The last stage of its chain.

    Whole transactions are durable there before they pass. The first parts of a large one are written, and
    become durable with its last part, as the target can't commit it before.
    """

    name = "relay"

    def __init__(self, options: RelayOptions) -> None:
        self._options = options
        self._writer: RelayWriter | None = None

    def open(self, context: StageContext) -> None:
        self.close()
        checkpoint, writer = context.checkpoint, RelayWriter(self._options)
        self._writer = writer
        _claim(self._options.directory, context.feed, context.sink)
        self._reject_tables(checkpoint.tables)
        if writer.source and checkpoint.source != writer.source:
            raise SinkError(
                f"relay {self._options.directory} has what came from {writer.source}, and this feed follows "
                f"{checkpoint.source}: name another directory"
            )
        gap = checkpoint.ts > writer.end_ts
        if gap and writer.source:
            log.warning(
                "relay %s ends at ts %d, and the target is at %d: the relay begins there",
                self._options.directory,
                writer.end_ts,
                checkpoint.ts,
            )
        # A snapshot's rows may come otherwise again.
        if gap or not writer.source or not checkpoint.is_loaded:
            writer.begin(
                checkpoint.source,
                checkpoint.ts,
                is_empty=not checkpoint.position and checkpoint.loading is not None,
            )
        writer.purge(checkpoint.ts)  # keep_bytes may be less now

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        items: list[Item] = []
        for element in batch:
            if isinstance(element, Lag):
                self._reject_tables([element.table] if element.at is not None else [])
            elif not isinstance(element, Mark):
                items.append(element)
        self._write(items)
        return batch

    def _write(self, items: list[Item]) -> None:
        """Write what isn't in the relay, and make it durable as far as transactions are whole."""
        writer = self._writer
        assert writer is not None
        new = [item for item in items if item.commit_ts > writer.end_ts]
        if not new:
            return
        whole = len(new)
        while whole and not new[whole - 1].last:
            whole -= 1
        if whole:
            writer.append(new[:whole])
            writer.mark(new[whole - 1].commit_ts)
        if whole < len(new):
            writer.append(new[whole:])

    def _reject_tables(self, tables: Iterable[str]) -> None:
        for table in tables:
            raise SinkError(
                f"relay {self._options.directory}: table {table} lags behind the others, which a relay can't "
                "record: remove the relay from this sink"
            )

    def durable(self, checkpoint: Checkpoint) -> Sequence[Element]:
        if self._writer is not None:
            self._writer.purge(checkpoint.ts)
        return ()

    def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()


def _claim(directory: Path, feed: str, sink: str) -> None:
    """Note the owner of a relay that has none. Raises SinkError if it belongs to another one."""
    check_owner(directory, feed, sink)
    path = directory / _OWNER
    try:
        if not path.exists():
            replace(path, _text(feed, sink).encode())
    except OSError as error:
        raise StoreError(f"relay {directory}: {error.strerror}: make room, or remove the relay") from error


def check_owner(directory: Path, feed: str, sink: str) -> None:
    """Raise SinkError if the relay belongs to another sink."""
    try:
        had = (directory / _OWNER).read_text()
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"relay {directory}: {error.strerror}") from error
    if had != _text(feed, sink):
        raise SinkError(f"relay {directory} belongs to {had}: name another directory")


def _text(feed: str, sink: str) -> str:
    return f"sink {sink!r} of feed {feed!r}"
