"""Options of SQL databases as targets."""

from __future__ import annotations

from dataclasses import dataclass
from string import Formatter

from ...errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteOptions:
    """Raises ConfigError, naming what is accepted."""

    table_name: str = "{schema}.{table}"
    """What a source's table is called in the database."""

    def __post_init__(self) -> None:
        fields = {field for _, field, _, _ in Formatter().parse(self.table_name)} - {None}
        if "table" not in fields or fields - {"schema", "table"}:
            raise ConfigError(
                f"table_name {self.table_name!r} must have {{table}} in it, and may have {{schema}}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class MySqlOptions:
    """Of a MySQL or MariaDB server."""

    schema: str = ""
    """Where all tables go; empty: to the schema that the URL names, or each to its own."""
