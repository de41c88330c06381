"""Changes of a batch merged per row: one change for each row that is different after the batch.

insert + update is an insert, insert + delete nothing, update + delete a delete, delete + insert an update.
What is left is ordered so that a unique value is free before another row takes it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from ...dialects.database import Applier
from ...dialects.groups import LINKED, ChangeGroup, cut_groups
from ...dialects.keys import Key, KeyPart, TableKeys
from ...events import Op, Row, RowChange, Run, Table
from ...events.per_table import PerTable
from .parallel.keys import RowKeys

Values: TypeAlias = tuple[Any, ...]


class ChangeMerger:
    """Merges the changes of tables with a key and without foreign keys; others are left as they are.

    Unique keys that the target doesn't tell are left to it to reject, after which the changes are applied
    unmerged.
    """

    def __init__(self, target: Applier) -> None:
        self._is_linked = target.is_linked
        self._keys = PerTable(target.keys_of)
        self._row_keys = PerTable(self._known_keys)

    def groups(self, runs: Iterable[Run], max_rows: int) -> list[ChangeGroup]:
        """Return the groups to apply, in order, as cut_groups does."""
        by_table: dict[str, list[Run]] = defaultdict(list)
        for run in runs:
            by_table[LINKED if self._is_linked(run.table) else run.table.full_name].append(run)
        groups: list[ChangeGroup] = []
        for own in by_table.values():
            table = own[0].table
            merged = self._merged(table, own) if len(own) > 1 or own[0].op != "insert" else None
            groups += (
                cut_groups(own, max_rows, self._is_linked)
                if merged is None
                else _cut(table, merged, max_rows)
            )
        return groups

    def forget(self) -> None:
        """Look the keys up again when they are needed next."""
        self._keys.clear()
        self._row_keys.clear()

    def _known_keys(self, table: Table) -> RowKeys:
        table_keys = self._keys[table]
        own = Key(table_keys.name, tuple([KeyPart(i) for i in table.key]))
        return RowKeys(table, TableKeys(table_keys.name, table_keys.unique or (own,)))

    def _merged(self, table: Table, runs: Sequence[Run]) -> list[list[RowChange]] | None:
        """Return lists of changes, each of which may be applied in any order; None if they can't be
        merged."""
        if not table.key or any(run.table != table for run in runs):
            return None
        keys = self._keys[table]
        if keys.references or keys.shared or keys.taken:
            return None
        net = net_changes(table, (change for run in runs for change in run.changes()))
        return None if net is None else list(self._ordered(table, net))

    def _ordered(self, table: Table, net: Sequence[RowChange]) -> Iterator[list[RowChange]]:
        deletes = [change for change in net if change.op == "delete"]
        inserts = [change for change in net if change.op == "insert"]
        updates = [change for change in net if change.op == "update"]
        levels, cyclic = self._levels(table, updates)
        yield deletes + [replace(change, op="delete", after=None) for change in cyclic]
        yield from levels
        yield inserts + [replace(change, op="insert", before=None) for change in cyclic]

    def _levels(
        self, table: Table, updates: Sequence[RowChange]
    ) -> tuple[list[list[RowChange]], list[RowChange]]:
        """Return updates by level: each takes only unique values that are free after the levels before it.

        Of each cycle of rows that exchange values at least one is in the second list instead: its row must
        be deleted before and inserted after all of them.
        """
        row_keys = self._row_keys[table]
        before = row_keys.unique([change.before or () for change in updates])
        after = row_keys.unique([change.after or () for change in updates])
        leaver = {key: i for i, keys in enumerate(before) for key in keys - after[i]}
        waits: list[set[int]] = []
        followers: dict[int, list[int]] = defaultdict(list)
        for i, keys in enumerate(after):
            wanted = {leaver[key] for key in keys - before[i] if key in leaver} - {i}
            waits.append(wanted)
            for other in wanted:
                followers[other].append(i)
        levels: list[list[RowChange]] = []
        cyclic: list[RowChange] = []
        left = dict.fromkeys(range(len(updates)))
        ready = deque(i for i in left if not waits[i])
        while left:
            if not ready:
                broken = next(iter(left))
                cyclic.append(updates[broken])
                done = [broken]
            else:
                done = list(ready)
                levels.append([updates[i] for i in done])
                ready.clear()
            for i in done:
                del left[i]
                for follower in followers[i]:
                    waits[follower].discard(i)
                    if not waits[follower] and follower in left:
                        ready.append(follower)
        return levels, cyclic


class _Chain(NamedTuple):
    """A row from its first to its last change."""

    first: RowChange
    before: Row | None
    after: Row | None


def net_changes(table: Table, changes: Iterable[RowChange]) -> list[RowChange] | None:
    """Return one change for each row that is there before or after, and was changed; None if the changes
    don't follow one from the other."""
    index = table.key
    alive: dict[Values, _Chain] = {}  # by the present key
    gone: dict[Values, _Chain] = {}  # by the key before all changes
    left: set[Values] = set()  # keys that no row has now
    for change in changes:
        chain = _Chain(change, change.before, change.after)
        if change.before is not None:
            key = tuple([change.before[i] for i in index])
            if key in left:
                return None
            if (known := alive.pop(key, None)) is not None:
                chain = known._replace(after=change.after)
            left.add(key)
        if change.after is None:
            if chain.before is not None:
                gone[tuple([chain.before[i] for i in index])] = chain
            continue
        key = tuple([change.after[i] for i in index])
        if key in alive:
            return None
        left.discard(key)
        if chain.before is None and (old := gone.pop(key, None)) is not None:
            chain = old._replace(after=change.after)
        alive[key] = chain
    net: list[RowChange] = []
    for first, before, after in (*gone.values(), *alive.values()):
        op: Op = "insert" if before is None else "delete" if after is None else "update"
        net.append(replace(first, op=op, before=before, after=after))
    return net


def _cut(table: Table, ordered: Iterable[list[RowChange]], max_rows: int) -> list[ChangeGroup]:
    groups: list[ChangeGroup] = []
    for changes in ordered:
        stays = []
        for change in changes:
            if change.op == "update" and _moves(table, change):
                groups.append(ChangeGroup(table, "move", [change]))
            else:
                stays.append(change)
        groups += [
            ChangeGroup(table, stays[0].op, stays[first : first + max_rows])
            for first in range(0, len(stays), max_rows)
        ]
    return groups


def _moves(table: Table, change: RowChange) -> bool:
    before, after = change.before, change.after
    return before is not None and after is not None and any(before[i] != after[i] for i in table.key)
