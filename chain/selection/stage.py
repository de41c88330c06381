"""The stage that evaluates rules about what a sink gets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from msgspec.structs import replace

from ...errors import SinkError, about
from ...events import (
    Action,
    Ddl,
    DropTable,
    Item,
    RenameTables,
    Rows,
    TableName,
    Transaction,
    Ts,
    source_and_table,
)
from .. import Element, Keep, Stage, StageContext, emptied
from .columns import changed_columns, lost_columns
from .kinds import kind_of
from .loaded_by import KEYS, SECTIONS, conditions, differences, sinks_with
from .rule import Key, Rule, decided
from .runs import RunRules
from .tables import EVERY_TABLE


class SelectionStage(Stage):
    """Drops what rules are about: rows, changes of rows, schema changes, and parts of a snapshot.

    Rows are decoded only for a condition on them. The target is right only for the conditions that it was
    loaded by, so they are in its checkpoint. A schema change that gives existing rows other values in a
    condition's columns makes the table be loaded again.
    """

    name = "selection"

    def __init__(
        self, rules: Sequence[Rule], source_names: Collection[str] = (), keys: Sequence[Key] = KEYS
    ) -> None:
        """`source_names` are those of several sources whose tables may have equal names. `keys` are those of
        all conditions that the checkpoint may have; none if it is another stage that keeps conditions."""
        self._rules = tuple(rules)
        self._source_names = source_names
        self._keys = keys
        self._timestamps = frozenset[Ts]().union(*(rule.timestamps for rule in rules))
        self._untimed = [rule for rule in rules if not rule.timestamps]
        self._run_rules = RunRules(self._untimed)
        self._partial = [rule for rule in rules if rule.is_partial]
        self._keeps: list[Keep] = []
        self._sink = ""

    def open(self, context: StageContext) -> None:
        """Raises SinkError if the target was loaded by other conditions."""
        checkpoint = context.checkpoint
        self._sink = context.sink
        self._keeps = []
        if not self._keys:
            return
        if not checkpoint.position:
            states = {key: conditions(self._rules, key) for key in self._keys}
            self._keeps = [Keep(key, state) for key, state in states.items() if state]
        elif problem := next(differences(self._rules, self._sink, checkpoint.stages), ""):
            raise SinkError(f"sink {self._sink}: {problem}")

    def apply(self, batch: Sequence[Element]) -> Sequence[Element]:
        """Raises SinkError for a condition that can't be evaluated, or that a schema change breaks."""
        passed: list[Element] = [*self._keeps]
        self._keeps = []
        for item in batch:
            if isinstance(item, Transaction):
                if (left := self._transaction(item)) is not None:
                    passed.append(left)
            elif isinstance(item, Ddl):
                passed += self._ddl(item)
            else:
                passed.append(item)
        return passed

    def _at(self, ts: Ts) -> Sequence[Rule]:
        """Return the rules about events with a commit ts."""
        if ts not in self._timestamps:
            return self._untimed
        return [rule for rule in self._rules if not rule.timestamps or ts in rule.timestamps]

    # --- rows

    def _transaction(self, item: Transaction) -> Transaction | None:
        chunk = item.chunk
        if chunk is not None and chunk.table:
            _, table = source_and_table(chunk.table, self._source_names)
            if any(rule.is_whole and rule.tables.matches_full(table) for rule in self._untimed):
                return None
        rules = self._run_rules
        if item.commit_ts in self._timestamps:
            rules = RunRules(self._at(item.commit_ts))
        runs = item.runs
        left = rules.apply(runs, is_loaded=chunk is not None)
        return item if left == runs else replace(item, rows=Rows(left))

    # --- schema changes

    def _ddl(self, ddl: Ddl) -> Iterator[Item]:
        rules = self._at(ddl.commit_ts)
        whole = [rule for rule in rules if rule.is_whole]
        for part in self._of_tables(ddl, whole) if whole else [ddl]:
            left = self._of_kinds(part, rules) if isinstance(part, Ddl) else part
            with about(part.full_name if isinstance(part, Ddl) else ""):
                kept = self._of_rows(left) if isinstance(left, Ddl) else left
            yield kept

    def _of_tables(self, ddl: Ddl, whole: Sequence[Rule]) -> Sequence[Item]:
        """Return what of a schema change concerns tables that the sink has."""

        def takes(schema: str, table: str) -> bool:
            return not any(rule.tables.matches(schema, table) for rule in whole)

        if ddl.actions and isinstance(ddl.actions[0], RenameTables):
            wanted = [(takes(*old), takes(*new), old, new) for old, new in ddl.actions[0].pairs]
            return _renames(ddl, wanted)
        is_of_any = bool(ddl.refusal) and not ddl.table  # the statement's tables aren't known
        is_dropped = any(rule.tables is EVERY_TABLE for rule in whole)
        return [ddl if takes(ddl.schema, ddl.table) or (is_of_any and not is_dropped) else emptied(ddl)]

    def _of_kinds(self, ddl: Ddl, rules: Sequence[Rule]) -> Item:
        """Return a schema change without actions of dropped kinds; a snapshot's tables are created anyway."""
        rules = [rule for rule in rules if rule.is_about_statements]
        if not rules or not ddl.query:
            return ddl

        def drops(kind: str) -> bool:
            return decided(rules, (ddl.schema, ddl.table), kind, ddl.query) == "drop"

        left = tuple([action for action in ddl.actions if not drops(kind_of(action))])
        if len(left) == len(ddl.actions):
            return emptied(ddl) if not left and drops("other") else ddl
        return replace(ddl, actions=left) if any(map(kind_of, left)) else emptied(ddl)

    def _of_rows(self, ddl: Ddl) -> Ddl:
        """Return a schema change after which the conditions on rows are true of the same rows."""
        if ddl.refusal or not ddl.actions or not self._partial:
            return ddl
        if isinstance(ddl.actions[0], RenameTables):
            if all(self._partial_of(old) == self._partial_of(new) for old, new in ddl.actions[0].pairs):
                return ddl
            return replace(ddl, reload=f"other filters concern the tables by their new names: {ddl.query}")
        table = f"table {ddl.schema}.{ddl.table}"
        for rule in self._partial:
            if rule.condition is None or not rule.tables.matches(ddl.schema, ddl.table):
                continue
            if rule.share is not None and rule.share.is_by_key:
                if rule.share.changes(ddl, changed_columns(ddl.actions)):
                    return _loaded_again(ddl, f"{table}: the key by which its rows are divided was changed")
                continue
            columns = rule.condition.columns
            if gone := columns & set(lost_columns(ddl.actions)):
                raise SinkError(
                    f"{table}: {rule.label} needs column {min(gone)}, which is gone after {ddl.query}: "
                    f"correct {SECTIONS[rule.key]}, and give {sinks_with(rule.key, self._sink)} an "
                    "empty target"
                )
            if changed := columns & set(changed_columns(ddl.actions)):
                return _loaded_again(ddl, f"{table}: column {min(changed)} of {rule.label} was changed")
        return ddl

    def _partial_of(self, name: TableName) -> list[int]:
        """Return the numbers of the rules that concern a table's rows."""
        return [number for number, one in enumerate(self._partial) if one.tables.matches(*name)]


def _renames(ddl: Ddl, wanted: Sequence[tuple[bool, bool, TableName, TableName]]) -> Sequence[Item]:
    """Return what a RENAME does to the tables of the sink, which has each before it, and after it, or not.

    A table that leaves them is dropped first, as another may take its name; one that comes to them has to be
    loaded. If the tables are to be loaded again, so is each part: the stages before leave out their rows.
    """
    gone = [old for was, stays, old, _ in wanted if was and not stays]
    kept = tuple((old, new) for was, stays, old, new in wanted if was and stays)
    come = [new for was, stays, _, new in wanted if stays and not was]
    parts = [_part(ddl, old, (DropTable(),), ddl.reload) for old in gone]
    if kept:
        parts.append(_part(ddl, kept[0][0], (RenameTables(kept),), ddl.reload))
    for new in come:
        sentence = f"{'.'.join(new)} was renamed into the tables of this sink: {ddl.query}"
        parts.append(_part(ddl, new, (), sentence))
    if not parts:
        return [emptied(ddl)]
    return [*parts[:-1], replace(parts[-1], position=ddl.position, last=ddl.last)]


def _part(ddl: Ddl, name: TableName, actions: tuple[Action, ...], reload: str = "") -> Ddl:
    """Return a part of a schema change for one table, not the last one."""
    schema, table = name
    return replace(ddl, schema=schema, table=table, actions=actions, reload=reload, position="", last=False)


def _loaded_again(ddl: Ddl, why: str) -> Ddl:
    return replace(ddl, actions=(), reload=f"{why}: {ddl.query}")
