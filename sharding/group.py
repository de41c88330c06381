"""Groups of the shards of one source, and the lock among sources."""

from __future__ import annotations

from collections.abc import Iterable

from .sequence import ShardingSequence
from .shard import Shard


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
