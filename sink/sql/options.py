"""Options of SQL databases as targets."""

from __future__ import annotations

from dataclasses import dataclass, field
from string import Formatter
from typing import Literal, TypeAlias

from ...errors import ConfigError

Verify: TypeAlias = Literal["key", "before"]
"""Values of a row that an update or delete compares with those before it: its key, or all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteOptions:
    """Raises ConfigError that names the accepted values."""

    table_name: str = "{schema}.{table}"
    """Template of a table's name in the database, from {schema} and {table} of the source."""
    verify: Verify = "key"
    """With "before", a row that differs from the source's row before an update or delete is an error."""

    def __post_init__(self) -> None:
        fields = {field for _, field, _, _ in Formatter().parse(self.table_name)} - {None}
        if "table" not in fields or fields - {"schema", "table"}:
            raise ConfigError(
                f"table_name {self.table_name!r} must have {{table}} in it, and may have {{schema}}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class MySqlOptions:
    """Options of a MySQL or MariaDB server."""

    schema: str = ""
    """Target schema of all tables; empty: the URL's schema, or each table's own."""
    collations: dict[str, str] = field(default_factory=dict)
    """Substitutes for collations that the server lacks, such as utf8mb4_0900_ai_ci = "utf8mb4_nopad_bin".
    They must tell apart all values of unique keys."""
    verify: Verify = "key"
    """With "before", a row that differs from the source's row before an update or delete is an error."""
