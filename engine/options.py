"""Options of a feed, from the tables of a feed.toml."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import config
from ..actors import Clock
from ..errors import ConfigError
from ..mounter import DDL_ACTIONS, DDL_KINDS, Policy, Rule
from ..routing import TableFilter
from ..sink import Sink
from ..sink.kind import SinkContext
from ..sink.registry import GivenSink, given_sink, open_given
from ..sorter import SorterOptions
from ..sources.kind import SourceContext, SourceKind, SourceOptions
from ..sources.registry import OF_ANY, missing_url, open_kind, source_options
from ..sources.several_options import SEVERAL, several_options
from ..sources.source import Source
from .checkpoint import CheckpointFile
from .requests import RequestFile

DEFAULT_NAME = "tidemill"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
DATA_DIR = Path("tidemill-data")
KEYS = ("name", "data_dir", "until", "on_ddl", "source", "sink", "sorter", "capture", "spark")
"""Sections of a feed.toml; `capture` and `spark` are read by the commands that need them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """Options of one sink."""

    name: str
    url: str
    tables: TableFilter | None = None
    """Patterns of the feed's tables for this sink; None: all."""
    section: Mapping[str, Any] = field(default_factory=dict)
    """The rest of its section, unparsed."""
    given: GivenSink
    """Its kind, with the section as options of that kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedOptions:
    """All options of a feed; checked, but nothing is connected."""

    name: str = DEFAULT_NAME
    """Name of the feed, by which checkpoints are kept: several feeds may write to one database."""
    data_dir: Path = DATA_DIR
    """Directory of the status, checkpoints of sinks that can't hold them, and scratch files."""
    source_kind: SourceKind
    source: SourceOptions
    """Options of that kind."""
    tables: TableFilter
    sinks: tuple[SinkOptions, ...] = ()
    sorter: SorterOptions
    on_ddl: tuple[Rule, ...] = ()
    """Rules about schema changes of tables; the last one that matches wins. Without one they are applied."""
    until: str = ""
    """A position at which the feed is finished; "now" is the source's end when it starts; empty: none."""

    def sink_tables(self, sink: str) -> TableFilter | None:
        """Return the tables of the sink with this name; None: all of the feed."""
        return next((one.tables for one in self.sinks if one.name == sink), None)

    def wants(self, sink: str, table: str) -> bool:
        """Return True if the sink is given the table of this full name."""
        tables = self.sink_tables(sink)
        return (self.tables if tables is None else tables).matches_full(table)


def feed_directory(found: Mapping[str, Any]) -> Path:
    """Return the data directory of a feed with these tables."""
    return Path(found.get("data_dir", DATA_DIR))


def feed_options(
    found: Mapping[str, Any],
    source_form: config.Form = config.FILE,
    source_given: tuple[SourceKind, SourceOptions] | None = None,
) -> FeedOptions:
    """Build a feed's options. Raises ConfigError for missing, unknown and out-of-range values.

    `source_form` is the form of the source's options. `source_given` has precedence over them.
    """
    config.reject_unknown(found, KEYS, "")
    for key, kind in (("name", str), ("data_dir", str), ("until", str), ("sorter", dict)):
        if key in found and not isinstance(found[key], kind):
            raise ConfigError(f"{key}: expected a {'table' if kind is dict else 'string'}")
    if not _NAME.fullmatch(found.get("name", DEFAULT_NAME)):
        raise ConfigError("name: up to 64 letters, digits, - and _, for it is part of file names")
    rules = tuple(_rules(found.get("on_ddl", [])))
    directory = feed_directory(found)
    source = found.get("source", {})
    source_kind, options, tables = _sources(source, source_form, source_given)
    if rules and not source_kind.ddl_policies:
        raise ConfigError(f"on_ddl: a {source_kind.name} source has no such rules; leave the section out")
    sorter = {"directory": str(directory / "scratch"), **found.get("sorter", {})}
    return FeedOptions(
        name=found.get("name", DEFAULT_NAME),
        data_dir=directory,
        source_kind=source_kind,
        source=options,
        tables=tables,
        sinks=tuple(_sinks(found.get("sink", []))),
        sorter=config.build(SorterOptions, sorter, "sorter"),
        on_ddl=rules,
        until=found.get("until", ""),
    )


def _rules(sections: Any) -> Iterator[Rule]:
    """Yield the rules of the [[on_ddl]] sections. Raises ConfigError."""
    if not isinstance(sections, list) or not all(isinstance(section, dict) for section in sections):
        raise ConfigError("on_ddl: expected [[on_ddl]] tables")
    for number, section in enumerate(sections, 1):
        where = f"on_ddl {number}"
        config.reject_unknown(section, ("tables", "kinds", "action"), where)
        patterns, kinds = section.get("tables"), section.get("kinds", list(DDL_KINDS))
        if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
            raise ConfigError(f'{where}: tables: expected a list of patterns, for instance ["shop.*"]')
        if not isinstance(kinds, list) or not set(map(str, kinds)) <= set(DDL_KINDS):
            raise ConfigError(f"{where}: kinds = {kinds!r}: expected a list of: {', '.join(DDL_KINDS)}")
        if (action := section.get("action")) not in DDL_ACTIONS:
            raise ConfigError(f"{where}: action = {action!r}: one of {', '.join(DDL_ACTIONS)}")
        try:
            tables = TableFilter(patterns)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None
        yield Rule(tables, action, frozenset(kinds))


def _sources(
    source: Any, form: config.Form, given: tuple[SourceKind, SourceOptions] | None
) -> tuple[SourceKind, SourceOptions, TableFilter]:
    """Return the kind, options and tables of the one source, or of several."""
    if isinstance(source, dict):
        kind, options = given or _source(source, form)
        return kind, options, TableFilter(_patterns(source))
    if not isinstance(source, list) or not all(isinstance(section, dict) for section in source):
        raise ConfigError("source: expected a table, or several [[source]] tables")
    several = several_options(source)
    return SEVERAL, several, several.tables


def _source(section: Mapping[str, Any], form: config.Form) -> tuple[SourceKind, SourceOptions]:
    url = section.get("url")
    if not isinstance(url, str) or not url:
        raise missing_url(section)
    rest = {key: value for key, value in section.items() if key not in OF_ANY}
    return source_options(url, rest, form)


def _patterns(section: Mapping[str, Any]) -> list[str]:
    patterns = section.get("tables", [])
    if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
        raise ConfigError('source.tables: expected a list of patterns, for instance ["shop.*"]')
    return patterns


def _sinks(sections: Any) -> list[SinkOptions]:
    if not isinstance(sections, list) or not all(isinstance(section, dict) for section in sections):
        raise ConfigError("sink: expected [[sink]] tables")
    found = [_sink(number, section) for number, section in enumerate(sections, 1)]
    names = [sink.name for sink in found]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"sink.name: two sinks are called {name!r}; each needs a name of its own")
    return found


def _sink(number: int, section: Mapping[str, Any]) -> SinkOptions:
    url = section.get("url")
    if url is None:
        config.reject_unknown(section, ("name", "url", "tables"), f"sink {number}")
    if not isinstance(url, str) or not url:
        raise ConfigError(f'sink {number}: url: missing; for instance "sqlite:///copy.db"')
    name = section.get("name", f"sink-{number}")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(f"sink {number}: name: expected up to 64 letters, digits, - and _")
    tables = _sink_tables(name, section["tables"]) if "tables" in section else None
    rest = {key: value for key, value in section.items() if key not in ("url", "name", "tables")}
    return SinkOptions(name=name, url=url, tables=tables, section=rest, given=given_sink(name, url, rest))


def _sink_tables(name: str, patterns: Any) -> TableFilter:
    if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
        raise ConfigError(f'sink {name}: tables: expected a list of patterns, for instance ["shop.*"]')
    try:
        return TableFilter(patterns)
    except ConfigError as error:
        raise ConfigError(f"sink {name}: {error}") from None


def open_source(options: FeedOptions, clock: Clock) -> Source:
    """Return the source that the options name, not connected yet. Raises ConfigError."""
    return open_kind(options.source_kind, options.source, source_context(options, clock))


def source_context(options: FeedOptions, clock: Clock) -> SourceContext:
    directory = options.data_dir / f"scratch-{options.source_kind.name}"
    policy = Policy(options.on_ddl, RequestFile(options.data_dir).load().skip)
    return SourceContext(
        tables=options.tables, feed=options.name, directory=directory, clock=clock, on_ddl=policy
    )


def open_sinks(options: FeedOptions) -> list[Sink]:
    """Return the sinks that the options name, not opened yet. Raises ConfigError."""
    return [open_given(sink.given, sink_context(options, sink.name)) for sink in options.sinks]


def sink_context(options: FeedOptions, sink: str) -> SinkContext:
    return SinkContext(name=sink, feed=options.name, store=checkpoint_file(options, sink))


def make_data_dir(options: FeedOptions) -> None:
    """Create the data directory. Raises ConfigError if it can't be created."""
    try:
        options.data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"data_dir: {options.data_dir}: {error.strerror}") from None


def checkpoint_file(options: FeedOptions, sink: str) -> CheckpointFile:
    """Return the checkpoint store of a sink whose target can't hold it."""
    return CheckpointFile(options.data_dir / f"{options.name}.{sink}.checkpoint")
