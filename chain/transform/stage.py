"""The stage that applies transforms to rows and schema changes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ...errors import SinkError, about
from ...events import (
    Action,
    AddColumn,
    ChangeColumn,
    ChangeDetails,
    ChangeKey,
    CreateTable,
    Ddl,
    DropColumn,
    RenameTables,
    RowChange,
    Rows,
    Run,
    Table,
    Transaction,
)
from .. import Element, Stage, emptied
from .transform import TableTransform, Transform, same_forms


class TransformStage(Stage):
    """Applies to each table the first transform that matches it."""

    name = "transform"

    def __init__(
        self, transforms: Sequence[Transform], *, needs_key: bool, copies_definitions: bool = False
    ) -> None:
        """`needs_key` is True if the sink finds rows by their key, `copies_definitions` if it executes
        ChangeDetails, which other sinks only tell."""
        self._transforms = transforms
        self._copies_definitions = copies_definitions
        self._needs_key = needs_key
        self._known: dict[Table, TableTransform | None] = {}

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        return [self._transformed(one) for one in batch]

    def _transformed(self, item: Element) -> Element:
        if isinstance(item, Ddl):
            with about(item.full_name):
                return self._ddl(item)
        if isinstance(item, Transaction) and any(self._of(run.table) for run in item.runs):
            return replace(item, rows=Rows([self._run(run) for run in item.runs]))
        return item

    def _of(self, table: Table) -> TableTransform | None:
        if table not in self._known:
            rule = self._rule(table.schema, table.name)
            with about(table.full_name):
                self._known[table] = (
                    None if rule is None else TableTransform(rule, table, needs_key=self._needs_key)
                )
        return self._known[table]

    def _rule(self, schema: str, table: str) -> Transform | None:
        return next((one for one in self._transforms if one.tables.matches(schema, table)), None)

    def _run(self, run: Run) -> Run:
        transform = self._of(run.table)
        if transform is None:
            return run
        table, row = transform.table, transform.row
        with about(table.full_name):
            changes = [
                RowChange(one.commit_ts, one.start_ts, table, one.op, row(one.before), row(one.after))
                for one in run.changes()
            ]
        return Run(run.commit_ts, run.start_ts, table, run.op, changes)

    # --- schema changes

    def _ddl(self, ddl: Ddl) -> Element:
        if ddl.actions and isinstance(ddl.actions[0], RenameTables):
            for old, new in ddl.actions[0].pairs:
                if self._rule(*old) is not self._rule(*new):
                    raise SinkError(
                        f"transform: {'.'.join(old)} has another [[transform]] than {'.'.join(new)}, which "
                        f"this statement makes of it: let one match both: {ddl.query}"
                    )
            return ddl
        rule = self._rule(ddl.schema, ddl.table)
        if rule is None:
            return ddl
        actions = [left for action in ddl.actions if (left := self._action(ddl, rule, action)) is not None]
        if actions or not ddl.actions or ddl.reload or ddl.refusal:
            return replace(ddl, actions=tuple(actions))
        return emptied(ddl)

    def _action(self, ddl: Ddl, rule: Transform, action: Action) -> Action | None:
        match action:
            case CreateTable(table=table):
                transform = self._of(table)
                return replace(action, table=table if transform is None else transform.table)
            case AddColumn(column=column, after=after, expression=expression):
                if not rule.keeps(column.name):
                    return None
                if rule.replaces(column.name) and (column.default is not None or not column.nullable):
                    raise self._refused(ddl, column.name, "replaced here, and existing rows have its default")
                if expression:
                    raise self._refused(ddl, column.name, "computed from columns that may be changed here")
                return replace(action, column=rule.column(ddl.full_name, column), after=_kept(rule, after))
            case ChangeColumn(name=name, column=column, before=before, after=after):
                if rule.rule(name) != rule.rule(column.name):
                    raise self._refused(ddl, name, f"{column.name} after the statement, with another rule")
                if not rule.keeps(name):
                    return None
                if rule.replaces(name) and not same_forms(before, column):
                    raise self._refused(ddl, name, "replaced here, and the statement may change its values")
                now = rule.column(ddl.full_name, column)
                past = None if before is None else rule.column(ddl.full_name, before)
                return replace(action, column=now, before=past, after=_kept(rule, after))
            case DropColumn(name=name):
                return action if rule.keeps(name) else None
            case ChangeKey(columns=columns) if not self._needs_key:
                return action if all(map(rule.keeps, columns)) else replace(action, columns=())
            case ChangeKey(columns=columns):
                for name in columns:
                    if rule.rule(name) != (True, None, False):
                        raise self._refused(ddl, name, "in the primary key after the statement")
                return action
            case ChangeDetails() if not self._copies_definitions:
                return None
            case ChangeDetails():
                raise self._refused(
                    ddl, "", 'copied by definition: use copy = "columns" with a [[transform]]'
                )
        return action

    def _refused(self, ddl: Ddl, column: str, what: str) -> SinkError:
        which = f"column {column} is" if column else "the table can't be"
        return SinkError(f"transform: table {ddl.full_name}: {which} {what}: {ddl.query}")


def _kept(rule: Transform, after: str | None) -> str | None:
    """Return the place of a column; the end of the table if it was after a column that isn't kept."""
    return after if not after or rule.keeps(after) else None
