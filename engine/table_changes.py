"""Changes of single tables at the start of a pipeline: loaded, paused, resumed, parked or left out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from msgspec.structs import replace

from ..chain.selection.former import with_former
from ..errors import SinkError
from ..events import (
    FORMER,
    PENDING,
    REST,
    WHOLE,
    Batch,
    Checkpoint,
    Parking,
    SnapshotProgress,
    TablePosition,
    load_again,
    park,
    progress_of,
)
from ..sink import Sink, SinkTraits
from ..sink.rules import SinkRules
from ..sources.source import Source, SourceInfo
from .beginning import Beginning, wants_origin
from .options import FeedOptions
from .patterns import FormerPatterns, former_patterns
from .requests import PipelineRequests, TableRequests


def why_not_single(options: FeedOptions, source: Source, sinks: Mapping[str, SinkTraits]) -> str:
    """Return why the feed can't load single tables; empty if it can."""
    if options.routes:
        return "[[route]] merges tables, and a shard is a part of a table"
    if not source.traits.reloads:
        return f"a {options.source.kind.name} source reads its tables only together"
    for name, traits in sinks.items():
        if not traits.loads_tables:
            return f"sink {name} doesn't store which tables it loads"
    return ""


def changed_checkpoints(
    options: FeedOptions,
    rules: Mapping[str, SinkRules],
    source: Source,
    present: SourceInfo,
    stored: Mapping[str, Checkpoint | None],
    requests: PipelineRequests,
    now: float,
) -> dict[str, Checkpoint]:
    """Return the checkpoints of sinks, by name, in which the progress of a table changes: by requests, by
    errors, or as other patterns match it.

    `rules` are those of each sink, `stored` their checkpoints; a sink without one isn't changed. `now` is in
    Unix seconds. Only for a feed that loads single tables.
    """
    former = former_patterns(options)
    changed = {}
    for name, checkpoint in stored.items():
        if checkpoint is None:
            continue
        after = _by_patterns(options, rules[name], source, present, checkpoint, former.get(name), now)
        loading = _by_requests(partial(options.wants, rules[name]), after, requests.tables, now)
        for table, parking in requests.failed.get(name, {}).items():
            loading = park(loading, table, parking)
        after = replace(after, loading=loading)
        if after != checkpoint:
            changed[name] = after
    return changed


def carried_out(requests: TableRequests, stored: Mapping[str, Checkpoint | None]) -> TableRequests:
    """Return the requests that the changed checkpoints carry out: a table can be paused only where there is a
    checkpoint."""
    if any(checkpoint is None for checkpoint in stored.values()):
        return replace(requests, pause=())
    return requests


def store(sink: Sink, checkpoint: Checkpoint) -> None:
    """Make the checkpoint durable in a sink that is open. Raises SinkError for a sink that doesn't save it
    at once, and as `Sink.write` does."""
    sink.write(Batch([], checkpoint))
    if sink.flush() != checkpoint:
        raise SinkError(
            f"sink {sink.name}: it saves no checkpoint before its items are acknowledged, so its tables "
            "can't be loaded again together: name another target"
        )


def unneeded_tables(
    options: FeedOptions, rules: Mapping[str, SinkRules], begins: Beginning
) -> frozenset[str]:
    """Return the origin names of tables whose changes no sink needs before they are loaded again, though a
    sink has something of them."""
    checkpoints = begins.checkpoints
    listed = {
        name
        for checkpoint in checkpoints.values()
        for name in (checkpoint.loading if checkpoint is not None else None) or {}
        if name != REST
    }
    return frozenset(
        name
        for name in listed
        if all(
            checkpoint is None or progress_of(checkpoint.loading, name) is None
            for sink, checkpoint in checkpoints.items()
            if wants_origin(options, begins.names, rules[sink], name)
        )
    )


def _by_patterns(
    options: FeedOptions,
    rules: SinkRules,
    source: Source,
    present: SourceInfo,
    checkpoint: Checkpoint,
    former: FormerPatterns | None,
    now: float,
) -> Checkpoint:
    """Return the checkpoint with tables that the patterns match no longer, or again, or newly."""
    loading = checkpoint.loading
    listed = {name: have for name, have in (loading or {}).items() if name != REST}
    position = TablePosition(checkpoint.ts, checkpoint.position)
    removed = Parking("removed", now, position)
    for name, have in listed.items():
        is_removed = have.parked is not None and have.parked.state == "removed"
        if options.wants(rules, name):
            if is_removed:
                loading = load_again(loading, [name])
        elif not is_removed:
            loading = park(loading, name, removed)
    if former is None or (loading is not None and REST not in loading):
        return replace(checkpoint, loading=loading)  # else the snapshot has the tables that match now
    names = [f"{schema}.{table}" for schema, table in present.tables]
    for name in {*names, *source.copied(options.data_dir, checkpoint)} - listed.keys():
        if former.matches(name) and not options.wants(rules, name):
            loading = park(loading, name, removed)
    if former.only_excludes or not options.source.options.loads:
        return replace(checkpoint, loading=loading)
    added = [
        name
        for name in names
        if name not in listed and options.wants(rules, name) and not former.matches(name)
    ]
    loading = {**(loading or {REST: WHOLE}), **dict.fromkeys(added, PENDING)}
    state = with_former(checkpoint.stages.get(FORMER, ""), former.choices)
    return replace(checkpoint, loading=loading, stages={**checkpoint.stages, FORMER: state})


def _by_requests(
    wants: partial[bool], checkpoint: Checkpoint, requests: TableRequests, now: float
) -> SnapshotProgress | None:
    loading = checkpoint.loading
    loading = load_again(loading, some) if (some := [*filter(wants, requests.load_again)]) else loading
    for name in filter(wants, requests.pause):
        if parking_of(loading, name) is None:
            position = TablePosition(checkpoint.ts, checkpoint.position)
            loading = park(loading, name, Parking("paused", now, position))
    for name in filter(wants, requests.resume):
        if parking_of(loading, name) is not None:
            loading = load_again(loading, [name])
    return loading


def parking_of(loading: SnapshotProgress | None, name: str) -> Parking | None:
    """Return why a table is parked; None if it isn't."""
    have = (loading or {}).get(name)
    return None if have is None else have.parked
