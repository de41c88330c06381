"""Lags as a status has them; `lag_model.py` computes them."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ..events import HistogramCounts

LAG_SECONDS: Final = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 3600.0)
"""Bounds of the histograms of lags."""


class Lag(Struct, frozen=True):
    """Seconds that the oldest change that isn't durable has spent in each stage; None: not known yet."""

    commit_to_received: float | None = None
    """From the commit in the source to the receipt here; the whole lag if nothing newer was received."""
    received_to_resolved: float | None = None
    """Until nothing earlier could come: the end of its transaction, or the resolved ts of all tables."""
    resolved_to_written: float | None = None
    """Until the sink had written it: on its way to the sink, in its queue, in a statement of the target."""
    written_to_durable: float | None = None
    """Until it was durable in the target, with the checkpoint."""
    total: float | None = None


STAGES: Final = Lag.__struct_fields__[:-1]
NO_LAG: Final = Lag(0.0, 0.0, 0.0, 0.0, 0.0)


class SinkHistograms(Struct, frozen=True):
    """Counts of a sink since the feed's process has started."""

    batch_rows: HistogramCounts
    """Batches by their rows; bounds: `BATCH_ROWS`."""
    lag: dict[str, HistogramCounts]
    """Lags by stage, and "total", at each acknowledgement, of the oldest change that it made durable.
    Bounds: `LAG_SECONDS`."""
