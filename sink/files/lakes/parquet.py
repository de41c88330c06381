"""Parquet files are read in the caller's thread.

A thread of Arrow's pools lets go of a file's bytes after the rows are there. If they are a Python object and
the interpreter ends then, the process is aborted ("terminate called without an active exception").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq


def open_parquet(file: IO[bytes]) -> pq.ParquetFile:
    """Return a reader, for metadata and `read_rows`. Raises pyarrow.ArrowInvalid if the file is damaged."""
    return pq.ParquetFile(file, pre_buffer=False)


def read_rows(parquet: pq.ParquetFile, names: Sequence[str] | None = None) -> pa.Table:
    """Return the rows of a file, or columns of them. Raises pyarrow.ArrowInvalid if it is damaged."""
    return parquet.read(columns=None if names is None else list(names), use_threads=False)
