"""The table of DM's checkpoints: a row for each source, and one for each table of a source that has one.

Columns are those of DM 2.0.2 and later. A DM that starts adds none; one of an earlier version is upgraded by
DM itself first.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .point import Point

SCHEMA: Final = "dm_meta"
COLUMNS: Final = """
    id VARCHAR(32) NOT NULL, cp_schema VARCHAR(128) NOT NULL, cp_table VARCHAR(128) NOT NULL,
    binlog_name VARCHAR(128), binlog_pos INT UNSIGNED, binlog_gtid TEXT,
    exit_safe_binlog_name VARCHAR(128) DEFAULT '', exit_safe_binlog_pos INT UNSIGNED DEFAULT 0,
    exit_safe_binlog_gtid TEXT, table_info JSON NOT NULL, is_global BOOLEAN,
    create_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
    UNIQUE KEY uk_id_schema_table (id, cp_schema, cp_table)
"""
READ: Final = (
    "id, cp_schema, cp_table, binlog_name, binlog_pos, binlog_gtid, exit_safe_binlog_name, "
    "exit_safe_binlog_pos, exit_safe_binlog_gtid, is_global"
)
WRITTEN: Final = READ.replace(", is_global", ", table_info, is_global")
NO_TABLE_INFO: Final = "null"
"""With it, DM takes a table's definition from its target."""


def table_of(task: str) -> str:
    """Return the name of a task's table."""
    return f"{task}_syncer_checkpoint"


class DmRow(NamedTuple):
    """A row, as far as it is about positions."""

    id: str
    """Id of the source in DM."""
    schema: str
    """Empty, as `table` is, in the global row."""
    table: str
    point: Point
    exit: Point | None
    """Position up to which rows may have been applied already; None if it isn't known."""
    is_global: bool

    @classmethod
    def read(cls, row: tuple[object, ...]) -> DmRow:
        """Return what a row of the columns READ says."""
        id_, schema, table, *points, is_global = row
        begin, end = _point(points[:3]), _point(points[3:])
        return cls(str(id_), str(schema), str(table), begin, end if end.file else None, bool(is_global))


def _point(columns: list[object]) -> Point:
    file, offset, gtid = columns
    return Point(str(file or ""), int(str(offset or 0)), str(gtid or ""))
