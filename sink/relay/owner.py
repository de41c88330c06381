"""The owner of a relay: one sink of one feed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ...errors import SinkError, StoreError
from ...store.disk import replace

_FILE: Final = "owner"


def claim(directory: Path, feed: str, sink: str) -> None:
    """Note the owner of a relay that has none. Raises SinkError if it belongs to another one."""
    check_owner(directory, feed, sink)
    path = directory / _FILE
    try:
        if not path.exists():
            replace(path, _text(feed, sink).encode())
    except OSError as error:
        raise StoreError(f"relay {directory}: {error.strerror}: make room, or remove the relay") from error


def check_owner(directory: Path, feed: str, sink: str) -> None:
    """Raise SinkError if the relay belongs to another sink."""
    try:
        had = (directory / _FILE).read_text()
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"relay {directory}: {error.strerror}") from error
    if had != _text(feed, sink):
        raise SinkError(f"relay {directory} belongs to {had}: name another directory")


def _text(feed: str, sink: str) -> str:
    return f"sink {sink!r} of feed {feed!r}"
