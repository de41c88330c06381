"""A table's definition as far as statements on it need it."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ...events import Details, Table, TableName


class KnownTable(Struct, frozen=True):
    table: Table
    auto_increment: str = ""
    """Name of the AUTO_INCREMENT column; empty if there is none."""
    has_primary: bool = True
    """False if a unique key takes the place of the primary key, or the table has no key."""
    has_unique: bool = True
    """False if it certainly has no unique keys besides the primary key."""
    details: Details = Details(unknown="a definition that was not read from the server")
    whole: Table | None = None
    """The table with its generated columns, if `table` is without them; the other fields are of this one."""

    @property
    def complete(self) -> Table:
        """The table with all columns of its definition."""
        return self.whole or self.table

    def named(self, name: TableName) -> KnownTable:
        """Return the same table under another name."""

        details = self.details
        if any(check.name.startswith(f"{self.table.name}_chk_") for check in details.checks):
            details = replace(details, unknown="the new names of CHECKs that MySQL has named")
        table = replace(self.table, schema=name[0], name=name[1])
        whole = self.whole and replace(self.whole, schema=name[0], name=name[1])
        return replace(self, table=table, details=details, whole=whole)
