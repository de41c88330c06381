"""The typed frames of a micro-batch of the raw envelope, by table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema

from ...codec.ddl_bytes import decode_ddl
from ...errors import ConfigError, SourceError
from ...events import Ddl, RenameTables, Table
from ..change import RowCodecs
from ..read.commit_time import commit_times
from ..read.output import TypedBatches
from ..read.pick import Pick
from ..read.schema import lacks_schema_changes, operations_of, table_type, with_operations
from ..read.schema_changes import difference
from ..read.superset import superset
from ..read.typed import TypedEncoder, check_visible
from .last_changes import ORDER
from .table_changes import NOTHING, Order, RowStep, TableChanges

_NAMES: Final = ("schema", "table")
_END: Final = (1 << 63) - 1


class _Statement(NamedTuple):
    order: Order
    ddl: Ddl


class _Found(NamedTuple):
    """The part of the batch that is about one table."""

    versions: list[Table]
    """The tables of its rows' layouts, by their last rows."""
    statements: list[_Statement]
    end: Order


class TypedTables(Mapping[str, DataFrame]):
    """Frames with typed columns, by the full names of the tables that have changes in a micro-batch.

    A frame has the columns of `spark.readStream` with the option `table`. In `before` and `after` are all
    columns that the table's rows in this batch have; where a row lacks one, it is null. Asking for the frame
    of a table raises SourceError if it had a schema change that rows don't tell: `changes` has it.
    """

    def __init__(self, raw: DataFrame, *, invalid_dates: str = "fail") -> None:
        """`raw` has all columns of the envelope, and should be persisted: each frame reads it.

        Raises ConfigError if columns are missing.
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
        self._named = {
            name: superset(table.versions) for name, table in self._tables.items() if table.versions
        }

    def __getitem__(self, name: str) -> DataFrame:
        table = self._named[name]
        for statement in self._tables[name].statements:
            check_visible(statement.ddl)
        return self._rows(table)

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)

    def primary_key(self, name: str) -> tuple[str, ...]:
        """Return the names of the table's key columns, in the key's order; none without a primary key."""
        table = self._named[name]
        return tuple([table.columns[index].name for index in table.key])

    @property
    def changes(self) -> Mapping[str, TableChanges]:
        """The changes for merges, by the full names of all tables that have rows or schema changes.

        Raises ConfigError if the batch was read without schema changes, and SourceError if a table's columns
        changed without one, or for a change of a whole schema.
        """
        if lacks_schema_changes(self.raw.schema):
            raise ConfigError(
                "operations: without ddl a copy would miss a TRUNCATE or a RENAME; leave the option out, or "
                "give it ddl too"
            )
        for table in self._tables.values():
            for statement in table.statements:
                if not statement.ddl.table:
                    raise SourceError(
                        f"schema {statement.ddl.schema} was changed as a whole, and copies of its tables "
                        f"can't follow that: {statement.ddl.query[:200]}; load them into other copies"
                    )
        return {name: self._changes(name) for name in self._tables}

    def _changes(self, name: str) -> TableChanges:
        table = self._tables[name]
        bounds = [NOTHING, *[statement.order for statement in table.statements], (_END, _END, _END)]
        by_segment = [table.versions]
        if table.statements:
            by_segment = self._by_segment(table.versions, bounds)
        steps: list[RowStep | Ddl] = []
        for number, versions in enumerate(by_segment):
            if number:
                steps.append(table.statements[number - 1].ddl)
            if versions:
                _check_alike(versions)
                after, before = bounds[number : number + 2] if table.statements else (NOTHING, NOTHING)
                steps.append(RowStep(self._rows(versions[-1], after, before), versions[-1]))
        return TableChanges(self.raw.sparkSession, name, tuple(steps), table.end)

    def _by_segment(self, versions: Sequence[Table], bounds: Sequence[Order]) -> list[list[Table]]:
        """Return the versions that rows have between each two bounds."""
        segments: list[list[Table]] = [[] for _ in pairwise(bounds)]
        if not versions:
            return segments
        segment = sum((f.when(_at() > _literal(order), 1).otherwise(0) for order in bounds[1:-1]), f.lit(0))
        kinds = (
            self.raw.where(_is_row_of(versions[0]))
            .groupBy(segment.alias("segment"), "layout")
            .agg(f.max(_at()).alias("end"))
            .collect()
        )
        layouts = RowCodecs()
        for row in sorted(kinds, key=_end):
            segments[row.segment].append(layouts.read(bytes(row.layout)).table)
        return segments

    def _rows(self, table: Table, after: Order = NOTHING, before: Order = NOTHING) -> DataFrame:
        """Return the table's rows; those between two orders, unless `before` is before every change."""
        is_own = _is_row_of(table)
        if before != NOTHING:
            is_own &= (_at() > _literal(after)) & (_at() < _literal(before))
        kind = with_operations(table_type(table), operations_of(self.raw.schema))
        return self.raw.where(is_own).select(*USED).mapInArrow(TypedRows(table, self._invalid_dates), kind)


def _found(raw: DataFrame) -> dict[str, _Found]:
    """Return what the batch has of each table, with those first that have the earliest last row."""
    statements = f.collect_list(f.when(f.col("op") == "ddl", f.struct(*ORDER, "change"))).alias("statements")
    kinds = raw.groupBy(*_NAMES, "layout").agg(f.max(_at()).alias("end"), statements).collect()
    layouts = RowCodecs()
    tables: dict[str, _Found] = defaultdict(lambda: _Found([], [], NOTHING))
    for row in sorted(kinds, key=_end):
        if not row.statements:
            table = layouts.read(bytes(row.layout)).table
            name = table.full_name
            tables[name].versions.append(table)
            tables[name] = tables[name]._replace(end=max(tables[name].end, _end(row)))
        for one in row.statements:
            statement = _Statement((one.commit_ts, one.start_ts, one.sequence), decode_ddl(bytes(one.change)))
            for name in _names(statement.ddl):
                tables[name].statements.append(statement)
                tables[name] = tables[name]._replace(end=max(tables[name].end, statement.order))
    for found in tables.values():
        found.statements.sort(key=lambda one: one.order)
    return dict(tables)


def _names(ddl: Ddl) -> list[str]:
    """Return the full names of the tables that a schema change is about."""
    names = [ddl.full_name]
    for action in ddl.actions:
        if isinstance(action, RenameTables):
            names += [".".join(name) for pair in action.pairs for name in pair]
    return list(dict.fromkeys(names))


def _check_alike(versions: Sequence[Table]) -> None:
    """Raise SourceError if rows between the same schema changes have other columns."""
    for one, other in pairwise(versions):
        if change := difference(one, other):
            raise SourceError(
                f"{other.full_name}: {change}, and no schema change among these changes says why; load the "
                "table into another copy"
            )


def _is_row_of(table: Table) -> Column:
    return (f.col("schema") == table.schema) & (f.col("table") == table.name) & (f.col("op") != "ddl")


def _at() -> Column:
    return f.struct(*ORDER)


def _literal(order: Order) -> Column:
    values = zip(ORDER, order, strict=True)
    return f.struct(*[f.lit(value).cast("bigint").alias(name) for name, value in values])


def _end(row: Row) -> Any:
    return tuple(row.end)


USED: Final = ("commit_ts", "start_ts", "sequence", "op", "change", "layout")
"""The columns of the envelope that the rows are made of."""


class TypedRows:
    """Decodes batches of one table's rows, which must not have schema changes. Sent to executors by value."""

    def __init__(self, table: Table, invalid_dates: str) -> None:
        self._table = table
        self._invalid_dates = invalid_dates

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = to_arrow_schema(table_type(self._table), timezone="UTC")
        encoder = TypedEncoder(self._table, Pick(), invalid_dates=self._invalid_dates, widens=True)
        typed = TypedBatches(encoder)
        for batch in batches:
            if batch.num_rows:
                commits, *others = typed.convert(batch).columns
                columns = [commits, commit_times(commits), *others]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)
