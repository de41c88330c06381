"""The schema changes that the shards of a merged table have made and that aren't resolved yet."""

from __future__ import annotations

from ..errors import SinkError
from .shard import Shard
from .statement import ShardStatement


class WrongSequence(SinkError):
    """Two shards made different schema changes."""


class ShardingSequence:
    """Each shard's changes in their order. The longest is that of the group; each other is a prefix of it.

    The first change is the active one: once every shard has made it, it is resolved.
    """

    def __init__(self) -> None:
        self._made: dict[Shard, list[ShardStatement]] = {}
        """Changes of each shard that has made any. Replaced as a whole, as any thread may read it."""

    def __bool__(self) -> bool:
        return bool(self._made)

    def add(self, statement: ShardStatement) -> None:
        """Add a shard's next change; one at a position that the shard has reached already is ignored.

        Raises WrongSequence unless it is what the longest sequence has in its place.
        """
        own = self._made.get(statement.shard, [])
        if own and statement.after.ts <= own[-1].after.ts:
            return
        longest = self.longest
        if len(own) < len(longest) and longest[len(own)].form != statement.form:
            theirs = longest[len(own)].shard
            made = [one.ddl.query for one in [*own, statement]]
            raise WrongSequence(
                f"{statement.shard} and {theirs} are merged, and their schema changes differ: {theirs}: "
                f"{_listed([one.ddl.query for one in longest])}; {statement.shard}: {_listed(made)}: "
                "shards must make the same changes in the same order. Undo the different one in its shard "
                "and load everything into an empty target, or run tidemill resume FEED --skip-ddl "
                f'"{statement.ddl.logged_at or statement.ddl.position}"'
            )
        self._made = {**self._made, statement.shard: [*own, statement]}

    @property
    def longest(self) -> list[ShardStatement]:
        """Return the changes of the shard that has made most; among several, the first one."""
        return max(self._made.values(), key=len, default=[])

    @property
    def owner(self) -> ShardStatement | None:
        """Return the active change as the first shard made it."""
        return min((one[0] for one in self._made.values()), key=lambda one: one.after.ts, default=None)

    def made(self, shard: Shard) -> list[ShardStatement]:
        return self._made.get(shard, [])

    def resolve(self) -> None:
        """Remove the active change from every shard that has made it."""
        self._made = {shard: made[1:] for shard, made in self._made.items() if made[1:]}

    @property
    def shards(self) -> list[Shard]:
        """Return the shards that have made the active change, in the order in which they did."""
        return sorted(self._made, key=lambda shard: self._made[shard][0].after.ts)


def _listed(statements: list[str]) -> str:
    return " | ".join(statements)
