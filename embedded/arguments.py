"""The arguments of `open` and `follow` as a feed's options and sinks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias, cast

from ..engine.opening import open_sinks
from ..engine.options import FeedOptions, feed_options
from ..errors import ConfigError
from ..sink import Sink, SinkFactory
from ..sorter import SorterOptions
from ..sources.kind import SourceOptions
from ..sources.registry import checked_options

SourceArgument: TypeAlias = str | SourceOptions | Sequence[Mapping[str, Any]]
SinkArgument: TypeAlias = str | Mapping[str, Any] | Callable[[], Sink]


def read_arguments(
    source: SourceArgument,
    tables: Sequence[str],
    *,
    data_dir: str | Path,
    name: str,
    until: str | None,
    source_options: Mapping[str, Any] | None,
    sorter: SorterOptions | Mapping[str, Any] | None,
    sinks: Sequence[SinkArgument],
) -> tuple[FeedOptions, list[SinkFactory]]:
    """Return the options, and factories of the sinks in the order given. Raises ConfigError."""
    sections = [_sink_section(number, sink) for number, sink in enumerate(sinks, 1)]
    found: dict[str, Any] = {
        "source": {
            **(source_options or {}),
            "url": source,
            "tables": tables if isinstance(tables, str) else list(tables),
        },
        "data_dir": str(data_dir),
        "name": name,
        "until": until or "",
        "sink": [section for section in sections if section is not None],
        "sorter": _given(sorter) if isinstance(sorter, SorterOptions) else dict(sorter or {}),
    }
    if isinstance(source, str):
        options = feed_options(found)
    elif isinstance(source, Sequence):
        if source_options:
            raise ConfigError("source_options: put them into the dictionaries of `source`")
        sections_of_source = _source_sections(cast("Sequence[Mapping[str, Any]]", source), tables)
        options = feed_options(found | {"source": sections_of_source})
    elif source_options:
        raise ConfigError(f"source_options: put them into the {type(source).__name__} of `source`")
    else:
        options = feed_options(found, source_given=checked_options(source))
    opened = iter(open_sinks(options))
    factories: list[SinkFactory] = []
    for sink in sinks:
        if isinstance(sink, str | Mapping):
            urls = sink.get("urls", ()) if isinstance(sink, Mapping) else ()
            factories += islice(opened, len(urls) or 1)
        else:
            factories.append(_factory(sink))
    return options, factories


def _source_sections(sources: Sequence[Mapping[str, Any]], tables: Sequence[str]) -> list[dict[str, Any]]:
    """Return several sources' sections of a feed.toml; `tables` are those of sources that name none."""
    if not all(isinstance(section, Mapping) for section in sources):
        raise ConfigError("source: several are dictionaries, each like a [[source]] of a feed.toml")
    patterns = tables if isinstance(tables, str) else list(tables)
    return [{"tables": patterns, **section} for section in sources]


def _sink_section(number: int, sink: SinkArgument) -> dict[str, Any] | None:
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


def _given(options: SorterOptions) -> dict[str, Any]:
    """Return the fields by name; None is the default of each field that may be None."""
    found = {field.name: getattr(options, field.name) for field in fields(options)}
    return {name: value for name, value in found.items() if value is not None}
