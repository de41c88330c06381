"""tidemill on Spark: its changes and snapshots as DataFrames, DataFrames into its sinks."""

from __future__ import annotations
