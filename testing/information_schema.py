"""Whole definitions of tables, as information_schema describes them, to compare copies with their source.

What may differ in a copy is listed here; everything else is compared.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any, Final

import pymysql
from pymysql.cursors import Cursor, DictCursor
from pymysql.err import ProgrammingError

from ..dialects.mysql.client import Session, show_create_table

MAY_DIFFER: Final[Mapping[str, frozenset[str]]] = {
    "TABLES": frozenset({
        "TABLE_SCHEMA", "ENGINE", "VERSION", "TABLE_ROWS", "AVG_ROW_LENGTH", "DATA_LENGTH", "MAX_DATA_LENGTH",
        "INDEX_LENGTH", "DATA_FREE", "AUTO_INCREMENT", "CREATE_TIME", "UPDATE_TIME", "CHECK_TIME", "CHECKSUM",
        "MAX_INDEX_LENGTH", "CREATE_OPTIONS",
    }),
    "COLUMNS": frozenset({
        "TABLE_SCHEMA", "GENERATION_EXPRESSION", "IS_GENERATED", "PRIVILEGES", "SRS_ID",
    }),
    "STATISTICS": frozenset({"TABLE_SCHEMA", "INDEX_SCHEMA", "CARDINALITY"}),
    "TABLE_CONSTRAINTS": frozenset({"TABLE_SCHEMA", "CONSTRAINT_SCHEMA"}),
    "CHECK_CONSTRAINTS": frozenset({"CONSTRAINT_SCHEMA"}),
    "PARTITIONS": frozenset({
        "TABLE_SCHEMA", "TABLE_ROWS", "AVG_ROW_LENGTH", "DATA_LENGTH", "MAX_DATA_LENGTH", "INDEX_LENGTH",
        "DATA_FREE", "CREATE_TIME", "UPDATE_TIME", "CHECK_TIME", "CHECKSUM", "TABLESPACE_NAME",
    }),
    "ST_GEOMETRY_COLUMNS": frozenset({"TABLE_SCHEMA", "SRS_ID", "SRS_NAME"}),
}  # fmt: skip
"""The views that are compared, each with the columns in which a copy may differ: names of schemas, engines,
options of tables other than comment, row format and character set, counters, and expressions of generated
columns, which are plain columns in a copy. KEY_COLUMN_USAGE and REFERENTIAL_CONSTRAINTS say of keys what
STATISTICS says, and else what foreign keys are, which aren't copied.

Besides, `_line` leaves out the row formats of engines other than InnoDB, prefixes, order and comment of a
primary key, COMPRESSED and SRID of columns, AUTO_INCREMENT of a column that may be NULL, and defaults from
sequences.
"""

_TABLE_TYPES: Final = ("BASE TABLE", "SYSTEM VERSIONED")
_GENERATED: Final = re.compile(r"(?:VIRTUAL|STORED) GENERATED(?:, )?")


def definitions(connection: pymysql.Connection[Cursor], schemas: Collection[str]) -> dict[str, list[str]]:
    """Return the definitions of all tables of these schemas: lines by the name of a table, which no two of
    them may have."""
    lines_of: dict[str, list[str]] = defaultdict(list)
    rows = {view: _rows(connection, view, schemas) for view in MAY_DIFFER}
    tables = {row["TABLE_NAME"] for row in rows["TABLES"] if row["TABLE_TYPE"] in _TABLE_TYPES}
    of_constraint = {row["CONSTRAINT_NAME"]: row["TABLE_NAME"] for row in rows["TABLE_CONSTRAINTS"]}
    for view, described in rows.items():
        for row in described:
            table = row.get("TABLE_NAME") or of_constraint[row["CONSTRAINT_NAME"]]
            if table in tables and row.get("CONSTRAINT_TYPE") != "FOREIGN KEY":
                lines_of[table].append(f"{view}: {_line(view, row)}")
    return {table: sorted(lines) for table, lines in lines_of.items()}


def _rows(
    connection: pymysql.Connection[Cursor], view: str, schemas: Collection[str]
) -> list[dict[str, Any]]:
    schema = "CONSTRAINT_SCHEMA" if view == "CHECK_CONSTRAINTS" else "TABLE_SCHEMA"
    query = f"SELECT * FROM information_schema.{view} WHERE {schema} IN %s"
    with connection.cursor(DictCursor) as cursor:
        cursor.execute("SHOW TABLES FROM information_schema LIKE %s", (view,))
        if not cursor.fetchall():
            return []
        cursor.execute(query, (tuple(schemas),))
        return [{name.upper(): value for name, value in row.items()} for row in cursor.fetchall()]


def _line(view: str, row: Mapping[str, Any]) -> str:
    left = {name: value for name, value in row.items() if name not in MAY_DIFFER[view]}
    if view == "TABLES":
        left["TABLE_TYPE"] = "BASE TABLE"
        if row["ENGINE"] != "InnoDB":  # its copy has InnoDB's
            left["ROW_FORMAT"] = "Dynamic"
    elif view == "COLUMNS":
        left["EXTRA"] = _GENERATED.sub("", left["EXTRA"] or "").strip()
        if left["IS_NULLABLE"] == "YES":
            left["EXTRA"] = left["EXTRA"].replace("auto_increment", "")
        left["COLUMN_TYPE"] = left["COLUMN_TYPE"].replace(" /*M!100301 COMPRESSED*/", "")
        default = left["COLUMN_DEFAULT"]
        if default == "NULL" or "nextval(" in (default or ""):  # MariaDB's for no default
            left["COLUMN_DEFAULT"] = None
    elif view == "STATISTICS" and row["INDEX_NAME"] == "PRIMARY":
        left |= {"SUB_PART": None, "COLLATION": None, "INDEX_COMMENT": None}
    return ", ".join(f"{name}={value}" for name, value in sorted(left.items()) if value not in (None, ""))


NOT_COPIED = re.compile(
    r" (ENGINE|AUTO_INCREMENT)=\w+| GENERATED ALWAYS AS \(.*?\) (VIRTUAL|STORED)"
    r"| (PAGE_CHECKSUM|TRANSACTIONAL)=\d"
)
_OF_COLUMNS = re.compile(r"(CHARACTER SET \w+ )?COLLATE \w+|CHARACTER SET \w+")
"""A server prints them or not, by its own rules."""


def definition(connection: Session, schema: str, table: str) -> list[str]:
    """Return a table's definition as far as it is copied, line by line, its indexes sorted."""
    quoted = table.replace("`", "``")
    try:
        text = show_create_table(connection, f"{schema}.`{quoted}`")
    except ProgrammingError:
        return []
    text = NOT_COPIED.sub("", text).replace(" DEFAULT NULL", "")
    text = re.sub(" +", " ", _OF_COLUMNS.sub("", text))
    lines = [line.strip(", ") for line in text.split("\n")[1:]]
    return sorted(line for line in lines if " FOREIGN KEY " not in line)
