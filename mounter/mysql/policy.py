"""Rules about schema changes, by table and kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, TypeAlias, get_args

from msgspec.structs import replace

from ...codec.mysql.entry import Query
from ...events import DropTable, RenameTables
from .change import Change, quoted
from .rule import Rule
from .statement_filter import StatementFilter

Action: TypeAlias = Literal["apply", "stop", "skip", "resnapshot"]
ACTIONS: Final[tuple[str, ...]] = get_args(Action)


class Policy:
    """Rules about schema changes; the last one that matches wins, and without one the change is applied.

    Statements at the positions in `skip` are skipped. A position of one of several sources is written
    "SOURCE=POSITION".
    """

    def __init__(
        self,
        rules: Sequence[Rule] = (),
        skip: Iterable[str] = (),
        source: str = "",
        filters: Sequence[StatementFilter] = (),
    ) -> None:
        """`filters` drop changes before there are rules about them."""
        self._filters = tuple(filters)
        self._rules = tuple(rules)
        self._skip = frozenset(skip)
        self._source = source

    def of_source(self, name: str) -> Policy:
        """Return the policy for one of several sources; an empty name means the only one."""
        return Policy(self._rules, self._skip, name, self._filters)

    def apply(self, changes: list[Change], query: Query) -> list[Change]:
        """Return the changes of a statement that are left.

        If one of them is to stop the feed, that is the only one.
        """
        if self._source and query.position:
            query = replace(query, position=f"{self._source}={query.position}")
        if not changes or query.position in self._skip:
            return []
        left: list[Change] = []
        for change in self._unfiltered(changes, query):
            for one in self._applied(change, query):
                if one.refusal:
                    return [one]
                left.append(one)
        return left

    def _unfiltered(self, changes: Sequence[Change], query: Query) -> Sequence[Change]:
        for one in self._filters:
            changes = [kept for change in changes if (kept := one.left(change, query)) is not None]
        return changes

    def _applied(self, change: Change, query: Query) -> list[Change]:
        if change.refusal:
            return [_placed(change, query)]
        name = change.schema, change.table
        if change.reload and not change.actions:
            found = self._action(name, change.kind)
            return [_stopped(change, change.kind, query)] if found == "stop" else [change] * (found != "skip")
        kinds = {action: change.kind_of(action) for action in change.actions}
        found_by_kind = {kind: self._action(name, kind) for kind in kinds.values()}
        for kind, found in found_by_kind.items():
            if found == "stop":
                return [_stopped(change, kind, query)]
        if "resnapshot" in found_by_kind.values():
            return _loaded_again(change, query)
        actions = tuple(action for action in change.actions if found_by_kind[kinds[action]] == "apply")
        return [replace(change, actions=actions)] if actions else []

    def _action(self, name: tuple[str, str], kind: str) -> str:
        for rule in reversed(self._rules):
            if kind in rule.kinds and rule.tables.matches(*name):
                return rule.action
        return "apply"


APPLY_ALL: Final = Policy()


def _placed(change: Change, query: Query) -> Change:
    """Return a refusal with the way to go on without the statement."""
    if not change.refusal or not query.position:
        return change
    return replace(
        change, refusal=f"{change.refusal} (to skip it: tidemill resume --skip-ddl {query.position})"
    )


def _stopped(change: Change, kind: str, query: Query) -> Change:
    name = f"{change.schema}.{change.table}"
    return Change(
        change.schema,
        change.table,
        refusal=f"table {name}: stopped before a statement of kind {kind!r} at {query.position}, as on_ddl "
        f"says: {quoted(query)}; to go on without it: tidemill resume --skip-ddl {query.position}; to load "
        f"the table again: tidemill resume --resnapshot {name}",
        kind=kind,
    )


def _loaded_again(change: Change, query: Query) -> list[Change]:
    """Return the change with a new load in place of its effect; a dropped table is dropped."""
    match change.actions:
        case (DropTable(),):
            return [change]
        case (RenameTables(pairs),):
            dropped = {old for old, _ in pairs} - {new for _, new in pairs}
            changes = [Change(*name, (DropTable(),), kind="rename table") for name in sorted(dropped)]
            return changes + [_reloaded(new, query) for _, new in pairs]
    return [_reloaded((change.schema, change.table), query)]


def _reloaded(name: tuple[str, str], query: Query) -> Change:
    schema, table = name
    said = f"table {schema}.{table} is loaded again, as on_ddl says: {quoted(query)}"
    return Change(schema, table, reload=said)
