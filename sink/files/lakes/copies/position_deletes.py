"""Position delete files of Iceberg tables: which rows of a data file are gone.

https://iceberg.apache.org/spec/#position-delete-files
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, StringType
from pyroaring import BitMap64

from .....errors import SinkError
from ...store import Store
from ..iceberg_io import location_of, name_of
from ..iceberg_schema import FIELD_ID
from ..parquet import open_parquet, read_rows

_PATH_ID: Final = 2147483546
_POSITION_ID: Final = 2147483545
_SCHEMA: Final = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={FIELD_ID: str(_PATH_ID)}),
        pa.field("pos", pa.int64(), nullable=False, metadata={FIELD_ID: str(_POSITION_ID)}),
    ]
)


def read_deletes(store: Store, deletes: Iterable[DataFile], location: str) -> BitMap64:
    """Return the numbers of the rows of the data file at a location that are in delete files."""
    gone = BitMap64()
    for one in deletes:
        if one.file_format != FileFormat.PARQUET:
            raise SinkError(
                f"{one.file_path}: deleted rows in the format {one.file_format} aren't known here: let the "
                "program that wrote them join the table's files"
            )
        with store.open(name_of(store, one.file_path)) as file:
            rows = read_rows(open_parquet(file), ["file_path", "pos"])
        gone.update(rows.filter(pc.equal(rows["file_path"], location))["pos"].to_pylist())
    return gone


def write_deletes(
    store: Store, folder: str, location: str, gone: BitMap64, partition: Record | None = None
) -> DataFile:
    """Write a file with the deleted rows of the data file at a location in a partition, and describe it.
    Raises as Store does."""
    positions = pa.array(gone, pa.int64())
    paths = pa.repeat(pa.scalar(location, pa.string()), len(gone))
    buffer = pa.BufferOutputStream()
    with pq.ParquetWriter(
        buffer,
        _SCHEMA,
        compression="zstd",
        use_dictionary=["file_path"],
        column_encoding={"pos": "DELTA_BINARY_PACKED"},
    ) as writer:
        writer.write_table(pa.Table.from_arrays([paths, positions], schema=_SCHEMA))
    content = buffer.getvalue()
    name = f"{folder}/{uuid4()}-deletes.parquet"
    store.write(name, content)
    path = to_bytes(StringType(), location)
    return DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=f"{location_of(store)}/{name}",
        file_format=FileFormat.PARQUET,
        partition=partition or Record(),
        record_count=len(gone),
        file_size_in_bytes=content.size,
        # Readers find the data file by these: both are its whole location.
        lower_bounds={_PATH_ID: path, _POSITION_ID: to_bytes(LongType(), gone.min())},
        upper_bounds={_PATH_ID: path, _POSITION_ID: to_bytes(LongType(), gone.max())},
    )
