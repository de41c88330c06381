"""Descriptions of Parquet files for Iceberg's manifests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DATA_FILE_TYPE, DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER_ID
from pyiceberg.typedef import Record

from ....errors import SinkError
from .iceberg_schema import FIELD_ID


def data_file(
    location: str,
    size: int,
    parquet: pq.FileMetaData,
    metadata: TableMetadata,
    partition: Sequence[int] = (),
    sort_order_id: int = UNSORTED_SORT_ORDER_ID,
) -> DataFile:
    """Describe a file of rows with the columns of a table. Raises SinkError if it has others."""
    schema = metadata.schema()
    try:
        statistics = data_file_statistics_from_parquet_metadata(
            parquet, compute_statistics_plan(schema, metadata.properties), _field_ids(parquet, schema)
        )
    except KeyError as error:
        raise SinkError(f"{location} has the column {error}, which the table hasn't") from error
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=location,
        file_format=FileFormat.PARQUET,
        partition=Record(*partition),
        file_size_in_bytes=size,
        sort_order_id=sort_order_id,
        spec_id=metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )


def _field_ids(parquet: pq.FileMetaData, schema: Schema) -> dict[str, int]:
    """Return the numbers of a file's columns by their paths: the table may have renamed a column since."""
    by_name = parquet_path_to_id_mapping(schema)
    fields = [field for field in parquet.schema.to_arrow_schema() if field.metadata]
    numbers = {field.name: int(field.metadata.get(FIELD_ID.encode(), 0)) for field in fields}
    known = {field.field_id for field in schema.fields}
    return by_name | {name: number for name, number in numbers.items() if number in known}


def partition_values(file: DataFile) -> tuple[Any, ...]:
    """Return the values of a file's partition, in the order of its specification."""
    return tuple(file.partition[place] for place in range(len(file.partition)))


def moved(file: DataFile, location: str) -> DataFile:
    """Describe a copy of a file at another location."""
    values = {field.name: file[place] for place, field in enumerate(DATA_FILE_TYPE[2].fields)}
    return DataFile.from_args(**{**values, "file_path": location})
