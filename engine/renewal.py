"""Loading all tables again into targets that have old copies of them."""

from __future__ import annotations

from collections.abc import Collection

from ..errors import ConfigError, SinkError, TidemillError
from ..events import STALE, Batch, Checkpoint, Ts
from ..sink import Sink
from .options import FeedOptions


class Renewed(TidemillError):
    """Every sink's checkpoint says that all tables are to be loaded again, from the source's end on."""

    def __init__(self) -> None:
        super().__init__("all tables are loaded again on request")


def reject_unrenewable(options: FeedOptions) -> None:
    """Raise ConfigError if the feed can't load all tables again into its present targets."""
    if not options.source_kind.renews or options.routes:
        raise ConfigError(
            "'*': only a feed of one MariaDB or MySQL server, without [[route]], loads all tables again into "
            "its present targets: give every sink an empty target, and a new snapshot is taken"
        )


def renewed(at: Checkpoint, copies: Collection[str], source: str, ts: Ts) -> Checkpoint:
    """Return the checkpoint of a target that was at `at`: each of its copies is loaded again.

    It has no position, so the source begins at its end. `ts` is above that of every transaction that any
    target has.
    """
    return Checkpoint(ts, "", dict.fromkeys(sorted(copies), STALE), source, at.owner, stages=at.stages)


def store(sink: Sink, checkpoint: Checkpoint) -> None:
    """Make the checkpoint durable in a sink that is open. Raises SinkError for a sink that doesn't save it
    at once, and as `Sink.write` does."""
    sink.write(Batch([], checkpoint))
    if sink.flush() != checkpoint:
        raise SinkError(
            f"sink {sink.name}: it saves no checkpoint before its items are acknowledged, so its tables "
            "can't be loaded again together: name another target"
        )
