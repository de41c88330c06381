"""Definitions of tables, to compare a copy with its source."""

from __future__ import annotations

import re

from pymysql.err import ProgrammingError

from ..dialects.mysql.client import Session, show_create_table

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
