"""Where a feed begins: its targets' checkpoints against what its source is now. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from ..errors import CheckpointError
from ..events import Checkpoint, SparkQuery, source_and_table
from ..sources.source import Source, SourceInfo
from .checkpoint import lowest
from .options import FeedOptions


class Beginning(Struct, frozen=True):
    source: str
    """Identity of the source in new checkpoints."""
    checkpoints: dict[str, Checkpoint | None]
    """Checkpoint of each sink's target, by the sink's name; None for a new target."""
    start: Checkpoint | None
    """Checkpoint from which the source serves all of them; None: with a first snapshot."""

    @property
    def placed(self) -> list[Checkpoint]:
        """The checkpoints of targets that have a position."""
        return [at for at in self.checkpoints.values() if at is not None and at.position]


def continued_identity(
    source: Source, present: SourceInfo, checkpoints: Mapping[str, Checkpoint | None], *, renews: bool = False
) -> str:
    """Return the identity of the source in these checkpoints, which a replica of it keeps.

    With `renews`, positions don't matter. Raises CheckpointError if a checkpoint can't be continued.
    """
    identity = present.source
    for name, at in checkpoints.items():
        if at is not None:
            _reject_foreign(source, replace(present, source=identity), name, at, renews=renews)
            identity = at.source or identity
    return identity


def beginning(
    options: FeedOptions,
    source: Source,
    present: SourceInfo,
    identity: str,
    found: Mapping[str, Checkpoint | None],
) -> Beginning:
    """Return where the feed begins. Raises CheckpointError for checkpoints of different sources."""
    checkpoints = dict(found)
    if not options.source.options.loads:
        checkpoints = {name: at or Checkpoint(0, "", None, identity) for name, at in found.items()}
    names = named_sources(options, present)
    wants = [partial(wants_origin, options, names, sink) for sink in checkpoints]
    return Beginning(identity, checkpoints, lowest(checkpoints.values(), order=source.rank, wants=wants))


def named_sources(options: FeedOptions, present: SourceInfo) -> Sequence[str]:
    """Return the names of several sources whose tables may have equal names; none of others."""
    return present.names if options.routes else ()


def wants_origin(options: FeedOptions, names: Sequence[str], sink: str, table: str) -> bool:
    """Return True if the sink is given the table of this origin name."""
    return options.wants(sink, source_and_table(table, names)[1])


def _reject_foreign(source: Source, present: SourceInfo, name: str, at: Checkpoint, *, renews: bool) -> None:
    """Raise CheckpointError unless this source can be followed from the checkpoint."""
    if at.owner is not None:
        parts = f" in {at.owner.partitions} partitions" if isinstance(at.owner, SparkQuery) else ""
        raise CheckpointError(
            f"sink {name} is written by Spark{parts}: go on with --engine spark, or name another target"
        )
    if at.source not in ("", present.source):
        if present.continues(at):
            return
        raise CheckpointError(
            f"sink {name} has what came from {at.source}, and {source.address} is {present.source}: "
            "connect to that server, or name another target"
        )
    if at.position and not renews and source.rank(at.position) > source.rank(present.end):
        raise CheckpointError(source.behind(name, at.position, present.end))
