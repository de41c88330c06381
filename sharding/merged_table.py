"""One merged table: its shards, its definition, and the schema changes that wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from ..errors import SinkError
from ..events import Action, AddColumn, ChangeColumn, ChangeKey, Column, DropColumn, Table, TableName, altered
from .difference import difference
from .join import Conflict, between, joined
from .sequence import ShardingSequence, WrongSequence
from .shard import Shard


class MergedState(Struct, frozen=True, omit_defaults=True):
    """State of a merged table in a checkpoint. Changes that wait come again from the source."""

    target: TableName
    shards: list[Shard]
    table: Table
    """Definition in the target."""
    definitions: dict[str, Table] = {}
    """Routed definitions of shards whose columns differ from the joined ones, by the shard's origin name."""
    dropped: dict[str, list[str]] = {}
    """Columns that some shards have dropped, and others haven't, by the shard's origin name."""
    owed: dict[str, list[str]] = {}
    """Forms of resolved changes that shards haven't made yet, by the origin name of the shard."""
    number: int = 0
    """Number of the last passed change, if several feeds write into the table."""


class MergedTable:
    def __init__(self, feed: str, target: TableName, table: Table) -> None:
        """`table` is the merged table's definition."""
        self.target = target
        self.table = table
        self.id = f"{feed}-`{target[0]}`.`{target[1]}`"
        """Name of its lock."""
        self.sequence = ShardingSequence()
        self._groups: dict[str, ShardingGroup] = {}
        self._owed: dict[str, list[str]] = {}
        self._definitions: dict[Shard, Table] = {}
        self._dropped: dict[str, list[str]] = {}
        self.number = 0
        """Number of the last passed change, if several feeds write into the table."""
        self.ready = 0
        """Number of the change before which the target has all rows of this feed."""
        self.barrier = 0
        """Number of the change that becomes ready once a barrier is passed."""

    @classmethod
    def restored(cls, feed: str, text: str) -> MergedTable:
        state = msgspec.json.decode(text, type=MergedState)
        made = cls(feed, state.target, state.table)
        made.number = state.number
        for shard in state.shards:
            made._group(shard).shards.add(shard)
        made._owed = dict(state.owed)
        made._dropped = dict(state.dropped)
        made._definitions = {
            shard: state.definitions[shard.origin_name]
            for shard in state.shards
            if shard.origin_name in state.definitions
        }
        return made

    @property
    def state(self) -> str:
        """The state for a checkpoint, as of the last resolved change."""
        definitions = {shard.origin_name: table for shard, table in self._definitions.items()}
        state = MergedState(
            self.target,
            sorted(self.shards),
            self.table,
            definitions,
            self._dropped,
            self._owed,
            self.number,
        )
        return msgspec.json.encode(state).decode()

    @property
    def full_name(self) -> str:
        return ".".join(self.target)

    @property
    def shards(self) -> list[Shard]:
        return [shard for group in self._groups.values() for shard in group.shards]

    @property
    def lock(self) -> Lock:
        return Lock(self._groups.values(), self.sequence)

    def _group(self, shard: Shard) -> ShardingGroup:
        return self._groups.setdefault(shard.source, ShardingGroup(shard.source))

    def has(self, shard: Shard) -> bool:
        return shard in self._group(shard).shards

    def join(self, shard: Shard, table: Table) -> None:
        """Add a shard; `table` is its definition, routed. Raises SinkError if it differs."""
        if mismatch := difference(table, self.table):
            raise SinkError(
                f"{shard} can't be merged into {self.full_name}: it {mismatch}: create it as the other "
                "shards are, or exclude it"
            )
        self._group(shard).shards.add(shard)

    def leave(self, shard: Shard) -> None:
        self._group(shard).shards.discard(shard)
        if not self._group(shard).shards:
            del self._groups[shard.source]
        self._owed.pop(shard.origin_name, None)
        self._definitions.pop(shard, None)

    # --- optimistic

    def definition(self, shard: Shard) -> Table:
        """Return the shard's routed definition."""
        return self._definitions.get(shard, self.table)

    def differing(self) -> list[Shard]:
        """Return the shards whose columns aren't those of the merged table."""
        return sorted(self._definitions)

    def reject_differing(self) -> None:
        """Raise SinkError if shards differ, which only the optimistic mode allows."""
        if differing := self.differing():
            raise SinkError(
                f"{self.full_name}: its shards differ ({', '.join(map(str, differing))}): "
                'set sharding.mode = "optimistic" until all have made the same changes'
            )

    def redefine(self, shard: Shard, actions: Sequence[Action]) -> tuple[Action, ...]:
        """Note that a shard made a change; return what it changes in the merged table.

        Raises Conflict, and leaves everything as it was then; SinkError for a change that no shard can make.
        """
        dropped = self._dropped
        try:
            self._check_actions(shard, actions)
            return self._join({shard: altered(self.definition(shard), actions)})
        except SinkError:
            self._dropped = dropped
            raise

    def accepts(self, shard: Shard, actions: Sequence[Action]) -> bool:
        """Return True if a shard's change is no conflict; note nothing."""
        before = self.table, self._definitions, self._dropped
        try:
            self.redefine(shard, actions)
        except Conflict:
            return False
        finally:
            self.table, self._definitions, self._dropped = before
        return True

    def adopt(self, shard: Shard, table: Table) -> tuple[Action, ...]:
        """Add a shard, whose definition may differ. Raises Conflict."""
        self._group(shard).shards.add(shard)
        return self._join({shard: table})

    def release(self, shard: Shard) -> None:
        """Remove a shard, whose rows stay. Raises SinkError if the others lack columns of these rows."""
        self.leave(shard)
        if self.shards and (lost := self._join({})):
            names = ", ".join(one.name for one in lost if isinstance(one, (DropColumn, ChangeColumn)))
            raise SinkError(
                f"{shard} was dropped, its rows stay in {self.full_name}, and no other shard has its columns "
                f"({names}): make its schema changes in the others before, and load everything into an empty "
                "target"
            )

    def _join(self, changed: dict[Shard, Table]) -> tuple[Action, ...]:
        tables = {shard: self.definition(shard) for shard in sorted(self.shards)} | changed
        before = self.table
        self.table = joined(before, [(str(shard), table) for shard, table in tables.items()])
        own = _columns(self.table)
        self._definitions = {shard: table for shard, table in tables.items() if _columns(table) != own}
        names = {column.name.lower() for column in self.table.columns}
        self._dropped = {
            name: left
            for name, columns in self._dropped.items()
            if (left := [column for column in columns if column in names])
        }
        return between(before, self.table)

    def _check_actions(self, shard: Shard, actions: Sequence[Action]) -> None:
        have = {column.name.lower(): column for column in self.table.columns}
        gone = self._dropped.get(shard.origin_name, [])
        for action in actions:
            match action:
                case AddColumn(column) if column.name.lower() in gone:
                    raise Conflict(
                        f"{shard}: column {column.name} is dropped here and not in all shards of "
                        f"{self.full_name}: it can't be added again before: drop it in the others first"
                    )
                case AddColumn(column) if (other := have.get(column.name.lower())) is not None:
                    if other.default != column.default:
                        raise Conflict(
                            f"{shard}: column {column.name} has DEFAULT {column.default} here and "
                            f"{other.default} in other shards of {self.full_name}, so their rows differ"
                        )
                case ChangeColumn(name, column) if name.lower() != column.name.lower():
                    raise SinkError(f"{shard}: column {name} can't be renamed in one shard of several")
                case ChangeKey():
                    raise SinkError(f"{shard}: the key can't be changed in one shard of several")
                case DropColumn(name):
                    gone = [*gone, name.lower()]
        self._dropped = {**self._dropped, shard.origin_name: gone} if gone else self._dropped

    # --- requests

    def owes(self, shard: Shard, form: str, query: str) -> bool:
        """Return True if the shard's change was resolved before, by request; note that the shard made it.

        Raises WrongSequence if it owes another one.
        """
        owed = self._owed.get(shard.origin_name, [])
        if not owed:
            return False
        if owed[0] != form:
            raise WrongSequence(
                f"{shard}: {query}: it must first make the change that was resolved without it: {owed[0]}"
            )
        self._owed = {**self._owed, shard.origin_name: owed[1:]}
        if not owed[1:]:
            del self._owed[shard.origin_name]
        return True

    def resolve(self, table: Table) -> None:
        """Resolve the active change, after which the merged table is `table`; shards without it owe it."""
        owner = self.sequence.owner
        assert owner is not None
        self._let_owe(self.lock.unsynced, owner.form)
        self.table = table
        self.sequence.resolve()

    def excuse(self, form: str, table: Table) -> None:
        """Adopt a change that other feeds have made; all shards owe it."""
        self._let_owe(self.shards, form)
        self.table = table
        self.number += 1

    def _let_owe(self, shards: Sequence[Shard], form: str) -> None:
        for shard in shards:
            owed = self._owed.get(shard.origin_name, [])
            self._owed = {**self._owed, shard.origin_name: [*owed, form]}


def _columns(table: Table) -> dict[str, Column]:
    return {column.name.lower(): column for column in table.columns}


class ShardingGroup:
    """The shards of one source that go into one merged table."""

    def __init__(self, source: str, shards: Iterable[Shard] = ()) -> None:
        self.source = source
        self.shards: set[Shard] = set(shards)

    def is_synced(self, sequence: ShardingSequence) -> bool:
        """Return True if all shards have made the active change; stop at one that hasn't."""
        return all(sequence.made(shard) for shard in self.shards)


class Lock:
    """The active change among sources: a source is ready once its group is synced.

    The owner is the first shard that made the change. It executes; the others wait and skip. The lock is
    synced when all sources are ready, and resolved when all have gone on.
    """

    def __init__(self, groups: Iterable[ShardingGroup], sequence: ShardingSequence) -> None:
        self._groups = list(groups)
        self._sequence = sequence

    @property
    def is_synced(self) -> bool:
        return bool(self._sequence) and all(group.is_synced(self._sequence) for group in self._groups)

    @property
    def synced(self) -> list[Shard]:
        return self._sequence.shards

    @property
    def unsynced(self) -> list[Shard]:
        shards = [shard for group in self._groups for shard in group.shards]
        return sorted(shard for shard in shards if not self._sequence.made(shard))
