"""How Parquet files are encoded, whoever stores them."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

_DICTIONARY_BYTES: Final = 64 << 10
"""Limit of a column's dictionary, after which its values are written as they are. A larger one seldom pays:
with Arrow's 1 MiB, numbers without repetitions take two to three times as long and more space
(docs/parquet.md)."""


def write_parquet(table: pa.Table, file: Any) -> None:
    """Write a table to an open file, or to a stream of Arrow. Raises OSError."""
    pq.write_table(table, file, compression="zstd", dictionary_pagesize_limit=_DICTIONARY_BYTES)
