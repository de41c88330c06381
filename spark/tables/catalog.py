"""Changes merged into a copy that is a Delta table of Spark's catalog, or of a path.

A batch is a commit for the rows between two schema changes, and one for each schema change. They are
numbered, so a batch that was interrupted goes on where it was, and an older one, however late it comes,
changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from ...errors import CheckpointError
from ...events import Ddl, Table
from .alteration import NONE, Alteration, alteration
from .columns import check_columns
from .delta_copy import DeltaCopy, Note, check_steps
from .last_changes import KEY, ROW, last_changes, quoted
from .table_changes import RowStep, TableChanges, changes_of, check_key, key_of
from .typed_tables import TypedTables

PARALLEL: Final = 4
"""Tables that are merged at once by default."""


def merge_into(
    changes: DataFrame | TableChanges, target: str, *, key: Sequence[str] | None = None, batch: int
) -> None:
    """Apply the changes of one table to `target`, a Delta table's name in SQL, in ascending batches.

    The target must have the changes' columns. The same batch again leaves it as it is, and an older one that
    comes late changes nothing. Schema changes have the effect that they had in the source, or raise
    SourceError. Raises ConfigError for a key or another kind of table, CheckpointError if the target has a
    later batch, or if another driver merges into it at the same time, and Spark's error if the target can't
    be merged into.
    """
    told = changes_of(changes)
    copy = DeltaCopy(told.spark, target)
    last = copy.last()
    if last is not None and last.batch >= batch:
        if (last.batch, last.end) != (batch, told.end):
            raise CheckpointError(_other(target, last.batch, batch))
        if last.is_last:
            return
    begun = 0 if last is None or last.batch < batch else last.step + 1
    known = None if last is None else last.table
    if known is None and not begun and told.steps and isinstance(told.steps[0], RowStep):
        known = told.steps[0].table
    steps = _steps(told, copy.schema, known, key, begun)
    for step in steps:
        note = Note(batch=batch, step=step.number, is_last=step is steps[-1], end=told.end, table=step.after)
        step.apply(copy, note)
    now = copy.last()
    if now is not None and (now.batch, now.end) != (batch, told.end):
        raise CheckpointError(_other(target, now.batch, batch))


def _other(target: str, present: int, batch: int) -> str:
    return (
        f"{target} has batch {present} already, and this is batch {batch} with other changes, of which "
        "nothing was merged now: another driver goes on there, another query writes there, or this one lost "
        "its checkpointLocation; let one query write there"
    )


class _Step(NamedTuple):
    """One commit."""

    number: int
    apply: Callable[[DeltaCopy, Note], None]
    after: Table | None
    """The source's definition of the table after it."""


def _steps(
    changes: TableChanges, schema: StructType, known: Table | None, key: Sequence[str] | None, begun: int
) -> list[_Step]:
    """Return the steps of a batch, of which the target has the first `begun`, checked before one is applied.

    `schema` are the target's columns, `known` is the source's definition of the table as of them.
    """
    check_steps(changes.name, 2 * len(changes.steps) + 2)
    made: list[_Step] = []
    columns, table = schema, known
    for place, step in enumerate(changes.steps):
        number = 2 * place
        if number + 1 < begun:
            continue
        if isinstance(step, RowStep):
            kind = step.frame.schema["after"].dataType
            assert isinstance(kind, StructType)
            its_key = key_of(changes, step, key)
            wide = check_columns(changes.name, columns, kind, table, step.table)
            if _kinds(wide) != _kinds(columns):
                made.append(_Step(number, _to(wide), table))
                columns = wide
            table = step.table
            made.append(_Step(number + 1, _merge(step.frame, kind.names, its_key), table))
            continue
        effect = alteration(step, table, columns.names)
        check_key(key, effect)
        table = None if table is None else effect.definition(table)
        after = effect.applied(changes.spark.createDataFrame([], columns)).schema
        if (
            effect.empties
            or _kinds(after) != _kinds(columns)
            or any(one.replaces_null for one in effect.changes)
        ):
            made.append(_Step(number + 1, _alter(effect, step), table))
            columns = after
    if not made or made[-1].after != table:
        made.append(_Step(2 * len(changes.steps), lambda copy, note: copy.note(note), table))
    return made


def _kinds(schema: StructType) -> list[tuple[str, object]]:
    return [(field.name, field.dataType) for field in schema]


def _to(columns: StructType) -> Callable[[DeltaCopy, Note], None]:
    """Return the step that gives the columns wider types."""
    return lambda copy, note: copy.rewrite(lambda rows: rows.to(columns), note)


def _merge(rows: DataFrame, columns: Sequence[str], key: Sequence[str]) -> Callable[[DeltaCopy, Note], None]:
    """Return the step that merges changes of rows."""

    def statement(table: str, view: str) -> str:
        return merge_statement(table, view, columns, key)

    return lambda copy, note: copy.merge(last_changes(rows, key), statement, note)


def _alter(effect: Alteration, ddl: Ddl) -> Callable[[DeltaCopy, Note], None]:
    """Return the step that has the effect of a schema change. Columns without values need no new files."""
    only_adds = effect == NONE._replace(adds=effect.adds, key=effect.key)

    def apply(copy: DeltaCopy, note: Note) -> None:
        effect.check_nulls(copy.rows(), ddl)
        if only_adds and all(added.is_null for added in effect.adds):
            copy.add_columns(effect.applied, note)
        else:
            copy.rewrite(effect.applied, note)

    return apply


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


def side_by_side(
    changes: Mapping[str, TableChanges], write: Callable[[TableChanges], object], *, parallel: int = PARALLEL
) -> None:
    """Call `write` with the changes of each table, those of `parallel` tables at once.

    All tables are written, also if one of them raises an error: the first such error is raised at the end,
    with the others as its notes.
    """
    if not changes:
        return
    session = next(iter(changes.values())).spark
    errors: dict[str, Exception] = {}

    def one(name: str) -> None:
        try:
            write(changes[name])
        except Exception as error:
            errors[name] = error

    with ThreadPoolExecutor(parallel) as pool:
        # Each thread gets the properties of this one, such as the job group by which Spark stops a query.
        tasks = [pool.submit(inheritable_thread_target(session)(one), name) for name in changes]
        for task in tasks:
            task.result()
    failed = [name for name in changes if name in errors]
    if failed:
        first = errors[failed[0]]
        for name in failed[1:]:
            first.add_note(f"also {name}: {errors[name]}")
        raise first
