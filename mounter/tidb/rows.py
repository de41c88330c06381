"""Decoding of raw changes of one table, at one version of its schema, into row changes."""

from __future__ import annotations

from ...codec.tidb.changes import ChangesDecoder
from .history import TableAt


class RowReader(ChangesDecoder):
    """Decodes the changes of one table as of a ts."""

    def __init__(self, table: TableAt) -> None:
        """Raises SourceError for a column of an unknown type."""
        super().__init__(table.schema, table.info)
