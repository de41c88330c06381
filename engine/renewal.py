"""Loading all tables again into targets that have old copies of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..errors import ConfigError, TidemillError
from ..events import FORMER, STALE, Checkpoint, Ts, compose_ts
from ..failpoint import reach
from ..sink import Sink
from ..sink.rules import SinkRules
from ..sources.source import Source
from .failures import blamed
from .options import FeedOptions
from .table_changes import store


class Renewed(TidemillError):
    """Every sink's checkpoint says that all tables are to be loaded again, from the source's end on."""

    def __init__(self) -> None:
        super().__init__("all tables are loaded again on request")


def reject_unrenewable(options: FeedOptions) -> None:
    """Raise ConfigError if the feed can't load all tables again into its present targets."""
    if not options.source.kind.renews or options.routes:
        raise ConfigError(
            "'*': only a feed of one MariaDB or MySQL server, without [[route]], loads all tables again into "
            "its present targets: give every sink an empty target, and a new snapshot is taken"
        )


def renewed(checkpoint: Checkpoint, copies: Collection[str], source: str, ts: Ts) -> Checkpoint:
    """Return the checkpoint of a target that was at `checkpoint`: each of its copies is loaded again.

    It has no position, so the source begins at its end. `ts` is above that of every transaction that any
    target has.
    """
    stages = {key: state for key, state in checkpoint.stages.items() if key != FORMER}
    return Checkpoint(ts, "", dict.fromkeys(sorted(copies), STALE), source, checkpoint.owner, stages=stages)


def renew(
    options: FeedOptions,
    source: Source,
    sinks: Sequence[tuple[Sink, SinkRules]],
    known: Mapping[str, Checkpoint | None],
    identity: str,
    now: float,
) -> None:
    """Have every sink that has tables load all of them again, from the source of this identity. `now` is in
    Unix seconds."""
    reject_unrenewable(options)
    stored = {name: checkpoint for name, checkpoint in known.items() if checkpoint is not None}
    # No target is ahead of another one, as none has any position.
    own = [checkpoint.ts for one in stored.values() for checkpoint in one.tables.values()]
    ts = max([compose_ts(int(now * 1000)), *own, *(one.ts for one in stored.values())]) + 1
    for sink, rules in sinks:
        if (checkpoint := stored.get(sink.name)) is not None:
            with blamed("source"):
                names = source.copied(options.data_dir, checkpoint)
            copies = [name for name in names if options.wants(rules, name)]
            with blamed(f"sink {sink.name}"):
                store(sink, renewed(checkpoint, copies, identity, ts))
            reach("renewal.stored")
