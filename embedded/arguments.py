"""The arguments of `open` and `follow` as a feed's options and sinks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias, cast

from ..chain.selection.table_option import table_patterns
from ..engine.opening import open_sinks
from ..engine.options import FeedOptions, feed_options
from ..errors import ConfigError
from ..sink import Sink, SinkFactory
from ..sorter import SorterOptions
from ..sources.kind import SourceOptions
from ..sources.registry import checked_options
from ..sources.sections import GivenSource

SourceArgument: TypeAlias = str | SourceOptions | Sequence[Mapping[str, Any]]
SinkArgument: TypeAlias = str | Mapping[str, Any] | Callable[[], Sink]


def read_arguments(
    source: SourceArgument,
    tables: Sequence[str],
    *,
    data_dir: str | Path,
    name: str,
    until: str | None,
    source_options: Mapping[str, object] | None,
    sorter: SorterOptions | Mapping[str, object] | None,
    sinks: Sequence[SinkArgument],
) -> tuple[FeedOptions, list[SinkFactory]]:
    """Return the options, and factories of the sinks in the order given. Raises ConfigError."""
    sections = [_sink_section(number, sink) for number, sink in enumerate(sinks, 1)]
    document: dict[str, object] = {
        "data_dir": str(data_dir),
        "name": name,
        "until": until or "",
        "sink": [section for section in sections if section is not None],
        "sorter": dict(sorter or {}) if isinstance(sorter, Mapping | None) else sorter,
    }
    patterns = tables if isinstance(tables, str) else list(tables)
    if isinstance(source, str):
        section = {**(source_options or {}), "url": source, "tables": patterns}
        options = feed_options(document | {"source": section})
    elif isinstance(source, Sequence):
        if source_options:
            raise ConfigError("source_options: put them into the dictionaries of `source`")
        if not all(isinstance(section, Mapping) for section in source):
            raise ConfigError("source: several are dictionaries, each like a [[source]] of a feed.toml")
        written = cast("Sequence[Mapping[str, Any]]", source)
        options = feed_options(
            document | {"source": [{"tables": patterns, **section} for section in written]}
        )
    elif source_options:
        raise ConfigError(f"source_options: put them into the {type(source).__name__} of `source`")
    else:
        kind, checked = checked_options(source)
        followed = table_patterns(patterns, "source.tables")
        options = feed_options(document, GivenSource(kind=kind, options=checked, tables=followed))
    opened = iter(open_sinks(options))
    factories: list[SinkFactory] = []
    for sink in sinks:
        if isinstance(sink, str | Mapping):
            urls = sink.get("urls", ()) if isinstance(sink, Mapping) else ()
            factories += islice(opened, len(urls) or 1)
        else:
            factories.append(_factory(sink))
    return options, factories


def _sink_section(number: int, sink: SinkArgument) -> dict[str, object] | None:
    """Return a sink's section of a feed.toml; None for a function, which needs none."""
    if isinstance(sink, str):
        sink = {"url": sink}
    if isinstance(sink, Mapping):
        return {"name": f"sink-{number}", **sink}
    if not callable(sink):
        raise ConfigError(
            f"sinks: {sink!r} is no URL, no dictionary and no function that returns a Sink: a feed that "
            "starts again needs a new Sink; the class of a Sink does, or a lambda"
        )
    return None


def _factory(make: Callable[[], Sink]) -> SinkFactory:
    def checked() -> Sink:
        sink = make()
        if not isinstance(sink, Sink):
            raise ConfigError(
                f"sinks: {make!r} returned {sink!r}, no Sink: derive its class from tidemill.Sink"
            )
        return sink

    return SinkFactory(checked)
