"""docs/reference/types.md has the types of Python and of targets for each kind of column."""

from __future__ import annotations

from pathlib import Path

from tidemill.dialects.duckdb import types as duckdb
from tidemill.dialects.postgres import types as postgres
from tidemill.dialects.sqlite import types as sqlite
from tidemill.events import KINDS, Column
from tidemill.sink.files.parquet_columns import arrow_type
from tidemill.testing.column_kinds import EVERY

DOCUMENT = Path(__file__).parents[1] / "docs" / "reference" / "types.md"
BEGIN, END = "<!-- types -->\n", "<!-- end of the types -->\n"


def source_type(column: Column) -> str:
    """Return a column's type as MariaDB spells it, without character set and members."""
    sizes = f"({column.length},{column.scale})" if column.kind == "decimal" else ""
    if column.kind in {"bit", "char", "varchar", "binary", "varbinary"} and column.length:
        sizes = f"({column.length})"
    elif column.kind in {"time", "datetime", "timestamp"} and column.scale:
        sizes = f"({column.scale})"
    return f"{column.kind.upper()}{sizes}{' UNSIGNED' if column.unsigned else ''}"


def row(column: Column) -> str:
    types = (
        KINDS[column.kind].python.__name__,
        postgres.declared_type(column),
        sqlite.declared_type(column) or "none",
        duckdb.declared_type(column),
        str(arrow_type(column)),
    )
    return f"| `{source_type(column)}` | {' | '.join(f'`{each}`' for each in types)} |\n"


def test_the_table_is_that_of_the_code(rewrite: bool) -> None:
    before, rest = DOCUMENT.read_text().split(BEGIN)
    after = rest.split(END)[1]
    columns = [*(column for column, _ in EVERY), Column("embedding", "vector")]
    rows = "".join(dict.fromkeys(map(row, columns)))
    head = "| source | Python | PostgreSQL | SQLite | DuckDB | Parquet |\n|---|---|---|---|---|---|\n"
    made = f"{before}{BEGIN}\n{head}{rows}\n{END}{after}"
    if rewrite:
        DOCUMENT.write_text(made)
    assert DOCUMENT.read_text() == made


def test_each_kind_of_column_is_there() -> None:
    text = DOCUMENT.read_text()
    assert [kind for kind in KINDS if f"| `{kind.upper()}" not in text] == []
