"""Parquet files are read in the caller's thread.

A thread of Arrow's pools lets go of a file's bytes after the rows are there. If they are a Python object and
the interpreter ends then, the process is aborted ("terminate called without an active exception").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Final

import pyarrow as pa
import pyarrow.parquet as pq

_PART: Final = 16_384
"""Number of rows of a part: as Python objects, with their keys, they take up to 10 MB."""


def open_parquet(file: IO[bytes]) -> pq.ParquetFile:
    """Return a reader, for metadata and `read_rows`. Raises pyarrow.ArrowInvalid if the file is damaged."""
    return pq.ParquetFile(file, pre_buffer=False)


def read_rows(parquet: pq.ParquetFile, names: Sequence[str] | None = None) -> pa.Table:
    """Return the rows of a file, or columns of them. Raises pyarrow.ArrowInvalid if it is damaged."""
    return parquet.read(columns=None if names is None else list(names), use_threads=False)


def read_parts(parquet: pq.ParquetFile, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """As `read_rows`, in parts of thousands of rows."""
    columns = None if names is None else list(names)
    for batch in parquet.iter_batches(_PART, columns=columns, use_threads=False):
        yield pa.Table.from_batches([batch])
