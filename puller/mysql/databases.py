"""The databases' default character sets, and the default collations."""

from __future__ import annotations

from typing import Final

from ...codec.mysql.collation import Charset
from ...codec.mysql.entry import Definitions
from ...dialects.mysql.client import Session, query

_DATABASES: Final = """
SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA
ORDER BY SCHEMA_NAME
"""
_COLLATIONS: Final = """
SELECT CHARACTER_SET_NAME, DEFAULT_COLLATE_NAME FROM information_schema.CHARACTER_SETS
"""


def read_databases(session: Session) -> Definitions:
    """Return the defaults of the server's databases, without tables."""
    return Definitions(
        databases=tuple(
            (name, Charset(charset, collation)) for name, charset, collation in query(session, _DATABASES)
        ),
        collations=dict(query(session, _COLLATIONS)),
        folds_names=query(session, "SELECT @@lower_case_table_names")[0][0] == 1,
    )
