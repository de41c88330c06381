"""Limits that no option sets, made so small that the few rows of a world reach them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from unittest.mock import patch

from msgspec import Struct

from ...sink.delivery import DeliveryOptions


class Limits(Struct, frozen=True):
    chunk_rows: int = 5_000
    """Rows of a chunk when a table is loaded."""
    batch_rows: int = 10_000
    """Rows of a batch for the sink; a larger transaction comes in parts."""
    kept_rows: int = 50_000
    """Rows of an open transaction that are kept to be written again."""
    turn_changes: int = 16_384
    """Changes that the sorter takes in one turn."""

    @contextmanager
    def set(self) -> Iterator[None]:
        """Have the code of this process use the limits meanwhile."""
        options = partial(DeliveryOptions, max_rows=self.batch_rows, max_kept_rows=self.kept_rows)
        with (
            patch("tidemill.sources.tikv_snapshot.CHUNK_ROWS", self.chunk_rows),
            patch("tidemill.sources.tikv_loads.CHUNK_ROWS", self.chunk_rows),
            patch("tidemill.sink.delivery.DeliveryOptions", options),
            patch("tidemill.sorter.intake.TURN_CHANGES", self.turn_changes),
        ):
            yield
