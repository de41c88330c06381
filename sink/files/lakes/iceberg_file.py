"""Descriptions of Parquet files for Iceberg's manifests."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DATA_FILE_TYPE, DataFile, DataFileContent, FileFormat
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER_ID
from pyiceberg.typedef import Record


def data_file(
    location: str,
    size: int,
    parquet: pq.FileMetaData,
    metadata: TableMetadata,
    partition: Sequence[int] = (),
    sort_order_id: int = UNSORTED_SORT_ORDER_ID,
) -> DataFile:
    """Describe a file of rows with the columns of a table."""
    schema = metadata.schema()
    statistics = data_file_statistics_from_parquet_metadata(
        parquet, compute_statistics_plan(schema, metadata.properties), parquet_path_to_id_mapping(schema)
    )
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


def moved(file: DataFile, location: str) -> DataFile:
    """Describe a copy of a file at another location."""
    values = {field.name: file[place] for place, field in enumerate(DATA_FILE_TYPE[2].fields)}
    return DataFile.from_args(**{**values, "file_path": location})
