"""Merged tables before anything is applied: their check, and shards that something else has merged so far."""

from __future__ import annotations

from msgspec.structs import replace

from ..errors import SinkError
from ..events import Checkpoint
from ..sharding import adopted_tables
from ..sharding.key_space import check_shards
from ..sink import Sink
from ..sources.source import Source
from .options import FeedOptions


def check_merge(options: FeedOptions, source: Source) -> None:
    """Raise SinkError for shards that differ, that have an extracted column, or whose keys meet."""
    if source.traits.has_key_spaces:
        with source.key_spaces() as spaces:
            check_shards(options.merging, spaces, keys=options.sharding.check_keys)


def with_shards(options: FeedOptions, source: Source, sink: Sink, at: Checkpoint) -> Checkpoint:
    """Return a sink's checkpoint, with the present shards if it took over from something that doesn't say
    which there are.

    Raises SinkError if they were changed since: then their definitions aren't those of the target.
    """
    adopts = sink.traits.adopts_merged and source.traits.has_key_spaces
    if not options.routes or at.stages or not adopts:
        return at
    with source.key_spaces() as spaces:
        merged = adopted_tables(options.merging, spaces)
    for one in merged:
        if found := sink.check_adopted(one.table):
            raise SinkError(
                f"{one.full_name} can't be taken over: in the target it {found}, against its shards: let DM "
                "go on until it has made all their schema changes, or load everything into an empty target"
            )
    return replace(at, stages={keep.key: keep.state for keep in merged.keeps()})
