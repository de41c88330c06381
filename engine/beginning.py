"""Where a feed begins: its targets' checkpoints against what its source is now. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from ..errors import CheckpointError, ConfigError, SinkError
from ..events import Checkpoint, SparkQuery, TablePosition, source_and_table
from ..sharding import adopted_tables
from ..sharding.key_space import check_shards
from ..sink import Sink
from ..sink.rules import SinkRules
from ..sources.source import Rank, Source, SourceInfo
from .checkpoint import lowest
from .failures import blamed
from .options import FeedOptions
from .patterns import reject_changes, reject_new_unmatched, reject_unmatched


class Beginning(Struct, frozen=True):
    source: str
    """Identity of the source in new checkpoints."""
    names: Sequence[str]
    """Names of several sources whose tables may have equal names; none of others."""
    checkpoints: dict[str, Checkpoint | None]
    """Checkpoint of each sink's target, by the sink's name; None for a new target."""
    start: Checkpoint | None
    """Checkpoint from which the source serves all of them; None: with a first snapshot."""
    until: Rank | None
    """Rank of the position where the feed ends; None if it has no end."""

    @property
    def placed(self) -> list[Checkpoint]:
        """The checkpoints of targets that have a position."""
        return [one for one in self.checkpoints.values() if one is not None and one.position]

    @property
    def loads(self) -> bool:
        """True if a snapshot of a target is incomplete."""
        return any(one is None or not one.is_loaded for one in self.checkpoints.values())


def continued_identity(
    source: Source, present: SourceInfo, checkpoints: Mapping[str, Checkpoint | None], *, renews: bool = False
) -> str:
    """Return the identity of the source in these checkpoints, which a replica of it keeps.

    With `renews`, positions don't matter. Raises CheckpointError if a checkpoint can't be continued.
    """
    identity = present.source
    for name, checkpoint in checkpoints.items():
        if checkpoint is not None:
            _reject_foreign(source, replace(present, source=identity), name, checkpoint, renews=renews)
            identity = checkpoint.source or identity
    return identity


def beginning(
    options: FeedOptions,
    source: Source,
    present: SourceInfo,
    identity: str,
    stored: Mapping[str, Checkpoint | None],
    rules: Sequence[SinkRules],
    seek: TablePosition | None = None,
) -> Beginning:
    """Return where the feed begins: no later than at `seek`. `rules` are those of the sinks in `stored`.

    Raises CheckpointError for checkpoints of different sources, and for a position that is none.
    """
    rank = source.rank
    names = present.names if options.routes else ()
    checkpoints = dict(stored)
    if not options.source.options.loads:
        checkpoints = {name: one or Checkpoint(0, "", None, identity) for name, one in stored.items()}
    wants = [partial(wants_origin, options, names, sink) for sink in rules]
    start = lowest(checkpoints.values(), order=rank, wants=wants)
    if start is not None and start.position and seek and rank(seek.position) < rank(start.position):
        start = replace(start, ts=seek.ts, position=seek.position)
    until = rank(present.end if options.until == "now" else options.until) if options.until else None
    return Beginning(identity, names, checkpoints, start, until)


def start_checks(
    options: FeedOptions,
    source: Source,
    present: SourceInfo,
    *,
    is_new: bool,
    why_not_single: str,
    checks_tables: bool = True,
) -> list[Callable[[], None]]:
    """Return what raises an error if the feed can't follow this source. `is_new` is True if no target has a
    position; `checks_tables`, if each new pattern has to match a table. `why_not_single` is the reason that
    single tables can't be loaded; empty if they can."""
    if why_not_single and options.on_table_error == "park":
        return [partial(_reject_parking, why_not_single)]
    if not is_new:
        if why_not_single:
            return [partial(reject_changes, options, why_not_single)]
        return [partial(reject_new_unmatched, options, present)] if checks_tables else []
    checks: list[Callable[[], None]] = []
    if checks_tables:
        checks.append(partial(reject_unmatched, options, present))
    if options.routes:
        checks.append(partial(check_merge, options, source))
    return checks


def _reject_parking(why: str) -> None:
    raise ConfigError(
        f"on_table_error: a table that is parked is loaded again, which this feed can't do: {why}"
    )


def wants_origin(options: FeedOptions, names: Sequence[str], sink: SinkRules, table: str) -> bool:
    """Return True if the sink is given the table of this origin name."""
    return options.wants(sink, source_and_table(table, names)[1])


def _reject_foreign(
    source: Source, present: SourceInfo, name: str, checkpoint: Checkpoint, *, renews: bool
) -> None:
    """Raise CheckpointError unless this source can be followed from the checkpoint."""
    if checkpoint.owner is not None:
        parts = (
            f" in {checkpoint.owner.partitions} partitions"
            if isinstance(checkpoint.owner, SparkQuery)
            else ""
        )
        raise CheckpointError(
            f"sink {name} is written by Spark{parts}: go on with --engine spark, or name another target"
        )
    if checkpoint.source not in ("", present.source):
        if present.continues(checkpoint):
            return
        raise CheckpointError(
            f"sink {name} has what came from {checkpoint.source}, and {source.address} is {present.source}: "
            "connect to that server, or name another target"
        )
    if checkpoint.position and not renews and source.rank(checkpoint.position) > source.rank(present.end):
        with blamed("source"):
            said = source.behind(name, checkpoint.position, present.end)
        raise CheckpointError(said)


def check_merge(options: FeedOptions, source: Source) -> None:
    """Raise SinkError for shards that differ, that have an extracted column, or whose keys meet."""
    if source.traits.has_key_spaces:
        with source.key_spaces() as spaces:
            check_shards(options.merging, spaces, keys=options.sharding.check_keys)


def with_shards(
    options: FeedOptions, source: Source, sinks: Sequence[Sink], stored: Mapping[str, Checkpoint | None]
) -> dict[str, Checkpoint | None]:
    """Return the sinks' checkpoints, by name: with the present shards where a sink took over from something
    that doesn't say which there are.

    Raises SinkError if they were changed since: then their definitions aren't those of the target.
    """
    result = dict(stored)
    for sink in sinks if options.routes and source.traits.has_key_spaces else ():
        checkpoint = stored[sink.name]
        if checkpoint is not None and not checkpoint.stages and sink.traits.adopts_merged:
            result[sink.name] = _with_shards(options, source, sink, checkpoint)
    return result


def _with_shards(options: FeedOptions, source: Source, sink: Sink, checkpoint: Checkpoint) -> Checkpoint:
    with source.key_spaces() as spaces:
        merged = adopted_tables(options.merging, spaces)
    for one in merged:
        if difference := sink.check_adopted(one.table):
            raise SinkError(
                f"{one.full_name} can't be taken over: in the target it {difference}, against its shards: "
                "let DM go on until it has made all their schema changes, or load everything into an empty "
                "target"
            )
    return replace(checkpoint, stages={keep.key: keep.state for keep in merged.keeps()})
