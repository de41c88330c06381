"""Changes merged by MERGE INTO into a table of a catalog: Delta Lake, Iceberg or Hudi.

What the table has is noted in its property `tidemill`, before a batch is merged and after it. So an older
batch is refused, a batch that was interrupted is merged again from its beginning, which has the same result,
and a driver that another one has overtaken fails.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Final
from uuid import uuid4

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from ...errors import CheckpointError, SourceError
from ...events import Table
from ..read.schema import column_type, row_type
from ..read.widening import holds
from .alteration import Alteration, alteration
from .columns import check_columns
from .last_changes import KEY, ROW, last_changes, quoted
from .table_changes import Order, Rows, TableChanges, changes_of, check_key, key_of
from .typed_tables import TypedTables

PROPERTY: Final = "tidemill"


class Merged(Struct, frozen=True):
    """State of the target: its last batch, and the table's definition."""

    batch: int
    end: Order
    """Order of the batch's last change."""
    driver: str = ""
    """Random name of the attempt that merged it last."""
    before: Table | None = None
    """The table's definition before the batch; None if it isn't known."""
    after: Table | None = None
    """The same after the batch, once it is merged."""


def merge_into(
    changes: DataFrame | TableChanges, target: str, *, key: Sequence[str] | None = None, batch: int
) -> None:
    """Apply the changes of one table to `target`, a table's name in SQL, in ascending batches.

    The target must have the changes' columns. The same batch again leaves it as it is. Schema changes have
    the effect that they had in the source, or raise SourceError before anything is written. Raises
    ConfigError for a key, CheckpointError if the target has a later batch, or if another driver merges into
    it at the same time, and Spark's error if the target can't be merged into.
    """
    found = changes_of(changes)
    into = CopyTable(found.spark, target)
    before = into.merged()
    is_repeat = before is not None and before.batch == batch and before.end == found.end
    if before is not None and before.batch >= batch and not is_repeat:
        raise CheckpointError(
            f"{target} has batch {before.batch} already, and this is batch {batch} with other changes: "
            "another query writes there, or this one lost its checkpointLocation; give it a table of its own"
        )
    known = None if before is None else before.before if is_repeat else before.after
    if known is None and found.steps and isinstance(found.steps[0], Rows):
        known = found.steps[0].table
    plan = _Plan(found, into.schema(), known, key)
    now = Merged(batch, found.end, uuid4().hex, known)
    into.note(now)
    for step in plan.steps:
        step.apply(into)
    if into.merged() != now:
        raise CheckpointError(
            f"{target}: another driver merged into it at the same time as batch {batch}, so rows may be "
            "those of an older batch: load the table again, and let one query write there"
        )
    into.note(replace(now, after=plan.table))


class _Merge:
    def __init__(self, rows: DataFrame, columns: Sequence[str], key: Sequence[str]) -> None:
        self._rows = rows
        self._columns = columns
        self._key = key

    def apply(self, target: CopyTable) -> None:
        last = last_changes(self._rows, self._key)
        view = f"tidemill_{uuid4().hex}"
        last.createOrReplaceTempView(view)
        try:
            has = {name.lower() for name in target.schema().names}
            columns = [name for name in self._columns if name.lower() in has]
            target.execute(merge_statement(target.name, view, columns, self._key))
        finally:
            target.spark.catalog.dropTempView(view)


class _Alter:
    def __init__(self, effect: Alteration) -> None:
        self._effect = effect

    def apply(self, target: CopyTable) -> None:
        for statement in alter_statements(target.name, self._effect, target.schema()):
            target.execute(statement)


class _Plan:
    """The steps of a batch, checked before the first one is applied."""

    def __init__(
        self, changes: TableChanges, schema: StructType, known: Table | None, key: Sequence[str] | None
    ) -> None:
        """`schema` is the target's. If the batch was interrupted it may have the effect of later steps."""
        self.table = known
        self.steps: list[_Merge | _Alter] = []
        effects: list[Alteration] = []
        copy = schema if known is None else row_type(known)
        for step in changes.steps:
            if isinstance(step, Rows):
                kind = step.frame.schema["after"].dataType
                assert isinstance(kind, StructType)
                copy = check_columns(changes.name, copy, kind, self.table, step.table)
                its_key = key_of(changes, step, key)
                self.steps.append(_Merge(step.frame, kind.names, its_key))
                self.table = step.table
                continue
            effect = alteration(step, self.table, copy.names)
            check_key(key, effect)
            if any(change.renames or change.replaces_null for change in effect.changes):
                raise SourceError(
                    f"{changes.name}: merge_into renames no column, and fills none that becomes NOT NULL; "
                    f"load the table into another one: {step.query[:200]}"
                )
            effects.append(effect)
            self.steps.append(_Alter(effect))
            copy = _altered(copy, effect)
            self.table = None if self.table is None else effect.definition(self.table)
        _check_target(changes.name, schema, copy, effects)


def _altered(copy: StructType, effect: Alteration) -> StructType:
    kinds = {field.name.lower(): field for field in copy}
    for name in effect.drops:
        del kinds[name.lower()]
    left = StructType([*kinds.values()])
    for change in effect.changes:
        left[change.name].dataType = column_type(change.column)
    for added in effect.adds:
        left.add(added.column.name, column_type(added.column))
    return left


def _check_target(name: str, schema: StructType, wanted: StructType, effects: Sequence[Alteration]) -> None:
    """Raise SourceError unless the target has the columns that the batch leaves, but for those that it adds,
    drops or changes."""
    names = {field.name.lower(): field for field in wanted}
    adds = {added.column.name.lower() for effect in effects for added in effect.adds}
    drops = {one.lower() for effect in effects for one in effect.drops}
    changes = {change.name.lower() for effect in effects for change in effect.changes}
    has = {field.name.lower(): field for field in schema}
    missing = [field.name for low, field in names.items() if low not in has and low not in adds]
    more = [field.name for low, field in has.items() if low not in names and low not in drops]
    narrow = [
        field.name
        for low, field in has.items()
        if low in names and low not in changes and not holds(field.dataType, names[low].dataType)
    ]
    again = [field.name for low, field in names.items() if low in adds & drops]
    if again:
        raise SourceError(
            f"{name}: column {again[0]} was dropped and added in one batch, which merge_into can't repeat; "
            "load the table into another one"
        )
    for what, columns in (("lacks", missing), ("has no values for", more), ("has narrower types of", narrow)):
        if columns:
            raise SourceError(
                f"{name}: the table that it is merged into {what} {', '.join(columns)}: give it the columns "
                "of the source, in the types of tidemill's frames"
            )


class CopyTable:
    def __init__(self, spark: SparkSession, name: str) -> None:
        self.spark = spark
        self.name = name

    def schema(self) -> StructType:
        return self.spark.table(self.name).schema

    def execute(self, statement: str) -> None:
        self.spark.sql(statement)

    def merged(self) -> Merged | None:
        rows = self.spark.sql(f"SHOW TBLPROPERTIES {self.name}").where(f.col("key") == PROPERTY).collect()
        return read_property(rows[0].value) if rows else None

    def note(self, merged: Merged) -> None:
        self.execute(f"ALTER TABLE {self.name} SET TBLPROPERTIES ('{PROPERTY}' = '{property_text(merged)}')")


def property_text(merged: Merged) -> str:
    """Return the property's value, in hex: Spark redacts properties with the letters url or password."""
    return zlib.compress(msgspec.json.encode(merged)).hex()


def read_property(text: str) -> Merged:
    return msgspec.json.decode(zlib.decompress(bytes.fromhex(text)), type=Merged)


def merge_statement(target: str, changes: str, columns: Sequence[str], key: Sequence[str]) -> str:
    """Return the statement that merges a view of `last_changes` into a target."""
    on = " AND ".join(f"t.{quoted(name)} <=> c.{KEY}.{quoted(name)}" for name in key)
    names = [quoted(name) for name in columns]
    values = [f"c.{ROW}.{name}" for name in names]
    pairs = ", ".join(f"t.{name} = {value}" for name, value in zip(names, values, strict=True))
    return (
        f"MERGE INTO {target} t USING {changes} c ON {on}\n"
        f"WHEN MATCHED AND c.{ROW} IS NULL THEN DELETE\n"
        f"WHEN MATCHED THEN UPDATE SET {pairs}\n"
        f"WHEN NOT MATCHED AND c.{ROW} IS NOT NULL "
        f"THEN INSERT ({', '.join(names)}) VALUES ({', '.join(values)})"
    )


def alter_statements(target: str, effect: Alteration, schema: StructType) -> Iterable[str]:
    """Yield the statements that alter a target with the columns of `schema`. They may be executed again if
    the rows after them are merged again, too."""
    has = {field.name.lower(): field.dataType for field in schema}
    if effect.empties:
        yield f"DELETE FROM {target}"
    for name in effect.drops:
        if name.lower() in has:
            yield f"ALTER TABLE {target} DROP COLUMN {quoted(name)}"
    for change in effect.changes:
        kind = column_type(change.column)
        if has.get(change.name.lower(), kind) != kind:
            yield f"ALTER TABLE {target} ALTER COLUMN {quoted(change.name)} TYPE {kind.simpleString()}"
    for added in effect.adds:
        name, type_ = quoted(added.column.name), column_type(added.column).simpleString()
        if added.column.name.lower() not in has or added.column.name in effect.drops:
            yield f"ALTER TABLE {target} ADD COLUMNS ({name} {type_})"
        if not added.is_null:
            yield f"UPDATE {target} SET {name} = {added.value} WHERE {name} IS NULL"


def by_table(
    write: Callable[[TypedTables, int], object], *, invalid_dates: str = "fail"
) -> Callable[[DataFrame, int], None]:
    """Return a function for foreachBatch that calls `write` with a batch's typed tables and its number.

    The batch is kept while `write` runs, so that the source is read once however many frames are used.
    """

    def each(batch: DataFrame, number: int) -> None:
        batch.persist()
        try:
            write(TypedTables(batch, invalid_dates=invalid_dates), number)
        finally:
            batch.unpersist()

    return each
