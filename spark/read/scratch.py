"""A task's scratch directory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ...errors import StoreError
from ...store.temporary import temporary_directory


@contextmanager
def scratch(parent: str = "") -> Iterator[Path]:
    """Create a directory under `parent`, or under the system's temporary directory.

    Raises StoreError if it can't be created.
    """
    with ExitStack() as stack:
        try:
            directory = stack.enter_context(temporary_directory("task", Path(parent) if parent else None))
        except OSError as error:
            raise StoreError(f"option scratchDir: no directory for a task: {error}") from None
        yield directory
