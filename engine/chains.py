"""The stages between a feed's items and each of its sinks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from ..chain import Stage
from ..chain.selection.loaded_by import KEYS
from ..chain.selection.rule import only
from ..chain.selection.stage import SelectionStage
from ..chain.transform.stage import TransformStage
from ..events import Checkpoint
from ..sharding import GhostStage, LockStatus, ShardStage, Unlock
from ..sink import SinkTraits
from ..sink.loopback import LoopbackStage
from ..sink.relay.stage import RelayStage
from ..sink.rules import SinkRules
from .coordination import FeedCoordination
from .options import FeedOptions


class Chains:
    """Makes the chain of each sink, and has the stages that other parts of the feed ask. Any thread."""

    def __init__(
        self,
        options: FeedOptions,
        names: Sequence[str],
        added: Mapping[str, Sequence[Stage]],
        coordination: FeedCoordination | None,
        look_for_end: Callable[[], object],
    ) -> None:
        """`names` are those of several sources whose tables may have equal names. `added` contains stages
        after the feed's own, by the sink's name. `look_for_end` is called when shards begin to wait."""
        self._options = options
        self._names = names
        self._added = added
        self._coordination = coordination
        self._look_for_end = look_for_end
        self._shards: dict[str, ShardStage] = {}
        """By the sink's name; empty unless tables are merged."""
        self._relays: dict[str, RelayStage] = {}

    def chain(
        self, sink: str, gets: SinkRules, checkpoint: Checkpoint | None, traits: SinkTraits
    ) -> list[Stage]:
        """Return the stages of a sink, which `gets` these events, after its resume filter."""
        options = self._options
        chain: list[Stage] = []
        routes = options.merging
        if routes and options.sharding.online_ddl:
            chain.append(GhostStage(routes, self._names))
        rules = [] if gets.tables is None else [only(gets.tables)]
        rules += [rule for rule in options.filters if not rule.is_about_statements]
        rules += gets.rows
        if rules or (checkpoint is not None and not checkpoint.stages.keys().isdisjoint(KEYS)):
            chain.append(SelectionStage(rules, self._names))
        if options.transforms:
            transforms = TransformStage(
                options.transforms,
                needs_key=traits.needs_key,
                copies_definitions=traits.copies_definitions,
            )
            chain.append(transforms)
        if routes:
            self._shards[sink] = self._shard_stage()
            chain.append(self._shards[sink])
        if gets.omissions:
            chain.append(SelectionStage(gets.omissions, self._names, keys=()))
        if gets.loopback_channel:
            chain.append(LoopbackStage(gets.loopback_channel))
        chain += self._added.get(sink, ())
        if gets.relay is not None:
            self._relays[sink] = RelayStage(gets.relay)
            chain.append(self._relays[sink])
        return chain

    def _shard_stage(self) -> ShardStage:
        coordination = self._coordination
        return ShardStage(
            self._options.sharding,
            self._options.merging,
            self._names,
            self._look_for_end,
            None if coordination is None else coordination.locks,
            _nothing if coordination is None else coordination.check,
        )

    def waiting_shards(self, sink: str) -> Collection[str]:
        """Return the origin names of tables whose rows wait for a schema change of other shards."""
        return self._shards[sink].waiting if sink in self._shards else ()

    def unlock(self, requests: Sequence[Unlock]) -> bool:
        """Resolve schema changes of merged tables by request; return False if no tables are merged."""
        for stage in self._shards.values():
            stage.unlock(requests)
        return bool(self._shards)

    def locks(self) -> list[LockStatus]:
        """Return the schema changes of merged tables that wait for shards."""
        return [lock for stage in self._shards.values() for lock in stage.locks()]

    def close(self, unanswered: Collection[str]) -> None:
        """Close the relays, except those of these sinks."""
        for sink, relay in self._relays.items():
            if sink not in unanswered:
                relay.close()


def _nothing() -> None:
    pass
