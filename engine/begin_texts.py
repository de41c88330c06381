"""Where a feed begins in each of its targets, in the words of `tidemill check`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ..config import Finding
from ..events import REST, WHOLE, Checkpoint
from ..sources.source import Source
from .options import FeedOptions

_MOST_NAMES: Final = 10
_NEEDS_TABLES: Final = ": the target must have the tables already, with their rows as of then"


def begin_texts(
    options: FeedOptions, source: Source, stored: Mapping[str, Checkpoint | None], *, renews: bool = False
) -> dict[str, str]:
    """Return the text for each sink, by its name. `stored` are the sinks' checkpoints; with `renews`, all
    tables are to be loaded again. Raises CheckpointError for a position that is none."""
    databases = {sink.name for sink in options.sinks if sink.given.kind.dialect is not None}
    first = _first(options, source, stored)
    return {
        name: _text(source, one, renews)
        if one is not None and (one.position or one.to_load)
        else first + (_NEEDS_TABLES if name in databases and not options.source.options.loads else "")
        for name, one in stored.items()
    }


def start_findings(
    options: FeedOptions, source: Source, stored: Mapping[str, Checkpoint | None], start: Checkpoint | None
) -> Iterator[Finding]:
    """Yield findings about the feed as a whole, whose source is read from `start` on."""
    if start is not None and any(one is not None and _differs(one, start) for one in stored.values()):
        place = source.described(start.position)
        yield Finding("ok", f"reads the source from {place}, the lowest position of its sinks and tables")
    if _is_placed(stored) and source.begins_at:
        option = options.source.kind.start_option
        yield Finding("ok", f"source.{option} isn't used: a feed begins there only without a checkpoint")


def _first(options: FeedOptions, source: Source, stored: Mapping[str, Checkpoint | None]) -> str:
    """Return the text for a sink that has nothing."""
    if options.source.options.loads:
        return "begins with a snapshot"
    if _is_placed(stored):
        return "begins where the feed goes on, without a snapshot"
    start = source.described(source.begins_at) if source.begins_at else "the source's present end"
    return f"begins at {start}, without a snapshot"


def _is_placed(stored: Mapping[str, Checkpoint | None]) -> bool:
    return any(one is not None and one.position for one in stored.values())


def _differs(one: Checkpoint, start: Checkpoint) -> bool:
    return bool(one.position) and one.position != start.position


def _text(source: Source, have: Checkpoint, renews: bool) -> str:
    if renews or not have.position:
        return "loads all tables again"
    return f"goes on from {source.described(have.position)}{_loads(have)}"


def _loads(have: Checkpoint) -> str:
    to_load = have.to_load
    if to_load is None:
        return ""
    if REST not in to_load:
        return ", in its snapshot"
    names = sorted(name for name, progress in to_load.items() if progress != WHOLE)
    if len(names) > _MOST_NAMES:
        return f", and loads {len(names):,} tables"
    return f", and loads {', '.join(names)}" if names else ""
