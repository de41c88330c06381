"""Rows that a real TiDB wrote, and what it prints of them: see tests/vectors."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from tidemill.codec.tidb.json import decode_json
from tidemill.codec.tidb.layout import cells_of, layout_of
from tidemill.codec.tidb.old_row import split_row
from tidemill.codec.tidb.table_info import TableInfo, decode_table_info
from tidemill.codec.tidb.time import printed_duration
from tidemill.events import Column

VECTORS = Path(__file__).parents[2] / "vectors"


class Vector(NamedTuple):
    info: TableInfo
    key: bytes
    value: bytes
    row_format: int
    printed: dict[str, str | None]
    zone: ZoneInfo
    checksums: dict[str, int]

    def cells(self) -> dict[int, bytes]:
        """The columns that the value holds, by id; of format 1 the bare values."""
        if self.row_format == 1:
            return {id_: bare for id_, (_, bare) in split_row(self.value).items()}
        return cells_of(layout_of(self.value), self.value)

    def is_older_than_table(self) -> bool:
        """The table got or lost columns since it was written."""
        cells = self.cells()
        public = {column.id for column in self.info.columns}
        added = {column.id for column in self.info.columns if column.origin_default is not None}
        return bool(cells.keys() - public or added - cells.keys())

    def json_tree(self, name: str) -> Any:
        """A JSON column's value; its text has lost what bytes and dates there are in it."""
        (column,) = [column for column in self.info.columns if column.name == name]
        return decode_json(self.cells()[column.id])


def read(file: str) -> Iterator[dict[str, Any]]:
    with gzip.open(VECTORS / f"{file}-v8.1.0.jsonl.gz", "rt") as lines:
        yield from map(json.loads, lines)


def load(file: str) -> list[Vector]:
    vectors, info = [], None
    for line in read(file):
        if text := line.get("table_info_json"):
            info = decode_table_info(text.encode())
        assert info is not None
        vectors.append(
            Vector(
                info,
                bytes.fromhex(line["key_hex"]),
                bytes.fromhex(line["value_hex"]),
                line["row_format"],
                line["select"],
                ZoneInfo(line["time_zone"]),
                line.get("checksum", {}),
            )
        )
    return vectors


def as_printed(column: Column, value: Any, zone: ZoneInfo) -> str | None:
    """A value as TiDB prints it to a session of that zone; bytes and bits in hex."""
    match column.kind:
        case _ if value is None or isinstance(value, str):
            return value
        case "bit":
            return value.to_bytes((column.length + 7) // 8, "big").hex()
        case "decimal":
            return f"{value:f}"
        case "binary" | "varbinary" | "blob":
            return value.hex()
        case "datetime":
            return _moment(value, column.scale)
        case "timestamp":
            assert value.tzinfo is not None
            return _moment(value.astimezone(zone), column.scale)
        case "time":
            return printed_duration(value, column.scale)
    return str(value)


def _moment(moment: datetime, scale: int) -> str:
    fraction = f".{moment.microsecond:06d}"[: scale + 1] if scale else ""
    return f"{moment:%Y-%m-%d %H:%M:%S}{fraction}"
