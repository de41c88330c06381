"""Rules about schema changes, by table and kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from shlex import quote
from typing import Final

from msgspec.structs import replace

from ...chain.selection.rule import Rule, decided
from ...codec.mysql.entry import Query
from ...events import DropTable, RenameTables
from .change import Change, quoted


class Policy:
    """Rules about schema changes; the last one that matches wins, and without one the change is applied. A
    change that a rule drops is left out before it is known whether it can be followed.

    Statements at the positions in `skip` are skipped. A position of one of several sources is written
    "SOURCE=POSITION".
    """

    def __init__(self, rules: Sequence[Rule] = (), skip: Iterable[str] = (), source: str = "") -> None:
        self._rules = tuple(sorted(rules, key=lambda rule: rule.action == "drop"))
        self._skip = frozenset(skip)
        self._source = source

    def of_source(self, name: str) -> Policy:
        """Return the policy for one of several sources; an empty name means the only one."""
        return Policy(self._rules, self._skip, name)

    def apply(self, changes: list[Change], query: Query) -> list[Change]:
        """Return the changes of a statement that are left, those that are refused first: nothing of the
        statement is applied before the feed stops there, and the rest of it once their tables are parked."""
        if self._source and query.position:
            query = replace(query, position=f"{self._source}={query.position}")
        if not changes or query.position in self._skip:
            return []
        left = [one for change in changes for one in self._applied(change, query)]
        return sorted(left, key=lambda one: (not one.refusal, bool(one.table)))

    def _applied(self, change: Change, query: Query) -> list[Change]:
        def action_of(kind: str) -> str:
            return decided(self._rules, (change.schema, change.table), kind, query.query)

        if change.refusal or not change.actions:  # its effect isn't known
            action = action_of(change.kind)
            if action == "drop":
                return []
            if change.refusal:
                return [_placed(change, query)]
            if action == "stop":
                return [_stopped(change, change.kind, query)]
            return [] if action == "skip" else [change]
        kinds = {action: change.kind_of(action) for action in change.actions}
        by_kind = {kind: action_of(kind) for kind in kinds.values()}
        for kind, action in by_kind.items():
            if action == "stop":
                return [_stopped(change, kind, query)]
        if "resnapshot" in by_kind.values():
            return _loaded_again(change, query)
        left = tuple([action for action in change.actions if by_kind[kinds[action]] == "apply"])
        if len(left) == len(change.actions):
            return [change]
        return [replace(change, actions=left)] if any(kinds[action] for action in left) else []


APPLY_ALL: Final = Policy()


def _placed(change: Change, query: Query) -> Change:
    """Return a refusal with the way to go on without the statement."""
    if not change.refusal or not query.position:
        return change
    return replace(
        change, refusal=f"{change.refusal} (to skip it: tidemill resume FEED --skip-ddl {query.position})"
    )


def _stopped(change: Change, kind: str, query: Query) -> Change:
    name = f"{change.schema}.{change.table}"
    return Change(
        change.schema,
        change.table,
        refusal=f"table {name}: stopped before a statement of kind {kind!r} at {query.position}, as on_ddl "
        f"says: {quoted(query)}; to go on without it: tidemill resume FEED --skip-ddl {query.position}; to "
        f"load the table again: tidemill resume FEED --resnapshot {quote(name)}",
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
