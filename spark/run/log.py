"""Spark's log of a query: the batches that it has planned and finished."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any


class QueryLog:
    """A query's checkpoint directory, read only. It may not exist yet."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: tuple[int, dict[str, object]] = -1, {}

    @property
    def begun(self) -> int:
        """Number of the last batch that was planned; -1: none."""
        return self._last("offsets")

    @property
    def done(self) -> int:
        """Number of the last batch that is finished; -1: none."""
        return self._last("commits")

    def end(self, batch: int) -> dict[str, Any]:
        """Return the end offset of a planned batch, as the source gave it; empty: there is none."""
        if self._read[0] != batch:
            with suppress(OSError, ValueError, IndexError):
                text = (self._directory / "offsets" / str(batch)).read_text()
                self._read = batch, json.loads(text.splitlines()[-1])
        return self._read[1] if self._read[0] == batch else {}

    def _last(self, kind: str) -> int:
        names = [path.name for path in (self._directory / kind).glob("[0-9]*")]
        return max((int(name) for name in names if name.isdecimal()), default=-1)
