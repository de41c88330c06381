"""The typed frames of a micro-batch of the raw envelope, by table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f

from ...codec.ddl_bytes import decode_ddl
from ...errors import ConfigError
from ...events import Table
from ..change import Layouts
from ..read.schema import table_type
from ..read.superset import superset
from ..read.typed import check_visible
from .typed_rows import USED, TypedRows

_ORDER: Final = ("commit_ts", "start_ts", "sequence")
_NAMES: Final = ("schema", "table")


class TypedTables(Mapping[str, DataFrame]):
    """Frames with typed columns, by the full names of the tables that have changes in a micro-batch.

    A frame has the columns of `spark.readStream` with the option `table`. In `before` and `after` are all
    columns that the table's rows in this batch have; where a row lacks one, it is null.
    """

    def __init__(self, raw: DataFrame, *, invalid_dates: str = "fail") -> None:
        """`raw` has all columns of the envelope, and should be persisted: each frame reads it.

        Raises ConfigError if columns are missing, and SourceError for schema changes that rows don't tell.
        """
        missing = [name for name in (*_NAMES, *USED) if name not in raw.columns]
        if missing:
            raise ConfigError(
                f"the rows lack the column {missing[0]}: give all columns of the raw envelope, as the option "
                "tables reads them"
            )
        self.raw: Final = raw
        """All changes of the batch in the raw envelope, schema changes among them."""
        self._invalid_dates = invalid_dates
        self._tables = _found(raw)

    def __getitem__(self, name: str) -> DataFrame:
        table = self._tables[name]
        rows = self.raw.where(
            (f.col("schema") == table.schema) & (f.col("table") == table.name) & (f.col("op") != "ddl")
        )
        return rows.select(*USED).mapInArrow(TypedRows(table, self._invalid_dates), table_type(table))

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def primary_key(self, name: str) -> tuple[str, ...]:
        """Return the names of the table's key columns, in the key's order; none without a primary key."""
        table = self._tables[name]
        return tuple([table.columns[index].name for index in table.key])


def _found(raw: DataFrame) -> dict[str, Table]:
    """Return the tables with rows in the batch, each with the columns of all its layouts."""
    statements = f.collect_list(f.when(f.col("op") == "ddl", f.col("change"))).alias("statements")
    at = f.max(f.struct(*_ORDER)).alias("at")
    found = raw.groupBy(*_NAMES, "layout").agg(at, statements).collect()
    layouts = Layouts()
    tables: dict[str, list[Table]] = {}
    for row in sorted(found, key=_at):
        for statement in row.statements:
            check_visible(decode_ddl(bytes(statement)))
        if not row.statements:
            table = layouts.read(bytes(row.layout)).table
            tables.setdefault(table.full_name, []).append(table)
    return {name: superset(versions) for name, versions in tables.items()}


def _at(row: Row) -> tuple[int, ...]:
    return tuple(row["at"])
