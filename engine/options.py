"""Options of a feed, from the tables of a feed.toml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import config
from ..chain.selection.rule import Rule
from ..chain.selection.sections import OmissionOptions, ddl_rules, filter_rules, strings_of
from ..chain.selection.tables import TablePatterns
from ..chain.transform.options import transforms_of
from ..chain.transform.transform import Transform
from ..dialects.options import MARK_SCHEMA, MARK_TABLE, MARKS
from ..errors import ConfigError
from ..sharding import Routes
from ..sharding.options import RouteRule, ShardingOptions, sharding_options
from ..sink.relay.options import RelayOptions
from ..sorter import SorterOptions
from ..sources.kind import SourceKind, SourceOptions
from ..sources.registry import OF_ANY, missing_url, source_options
from ..sources.several_options import SEVERAL, several_options
from .sink_options import NAME, SinkOptions, sections_of, sinks_of

DEFAULT_NAME = "tidemill"
DATA_DIR = Path("tidemill-data")
KEYS = (
    "name", "data_dir", "until", "on_ddl", "filter", "transform", "source", "sink", "sorter", "sharding",
    "route", "capture", "spark",
)  # fmt: skip
"""Sections of a feed.toml; `capture` and `spark` are read by the commands that need them."""


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
    tables: TablePatterns
    sinks: tuple[SinkOptions, ...] = ()
    sorter: SorterOptions
    on_ddl: tuple[Rule, ...] = ()
    """Rules about schema changes of tables; the last one that matches wins. Without one they are applied."""
    filters: tuple[Rule, ...] = ()
    """Rules about events that are dropped."""
    transforms: tuple[Transform, ...] = ()
    """Changes of columns and values, before any sink."""
    sharding: ShardingOptions = field(default_factory=ShardingOptions)
    routes: tuple[RouteRule, ...] = ()
    """Merged tables, and the tables that go into each."""
    until: str = ""
    """A position at which the feed is finished; "now" is the source's end when it starts; empty: none."""

    @property
    def merging(self) -> Routes:
        return Routes(self.routes, online_ddl=self.sharding.online_ddl)

    def reject_local_only(self, who: str) -> None:
        """Raise ConfigError if tables are merged or transformed, or events filtered, which `who` can't do."""
        if self.routes:
            raise ConfigError(f"route: {who} can't merge tables: only tidemill run with --engine local can")
        self.reject_filters(who)

    def reject_filters(self, who: str) -> None:
        """Raise ConfigError if events are filtered, which `who` can't do."""
        if self.filters:
            raise ConfigError(f"filter: {who} has no filters: only tidemill run with --engine local has")
        if self.transforms:
            raise ConfigError(f"transform: {who} can't do that: only tidemill run with --engine local can")
        for sink in self.sinks:
            if sink.rows:
                raise ConfigError(
                    f"sink {sink.name}: rows and urls: {who} can't choose among rows: only tidemill run with "
                    "--engine local can"
                )

    def sink_tables(self, sink: str) -> TablePatterns | None:
        """Return the tables of the sink with this name; None: all of the feed."""
        return next((one.tables for one in self.sinks if one.name == sink), None)

    def sink_rows(self, sink: str) -> tuple[Rule, ...]:
        """Return the rules about the rows of the sink with this name."""
        return next((one.rows for one in self.sinks if one.name == sink), ())

    def sink_omissions(self, sink: str) -> OmissionOptions:
        """Return the omissions of the sink with this name."""
        return next((one.omissions for one in self.sinks if one.name == sink), OmissionOptions())

    def sink_relay(self, sink: str) -> RelayOptions | None:
        """Return the relay of the sink with this name; None if it has none."""
        return next((one.relay for one in self.sinks if one.name == sink), None)

    def wants(self, sink: str, table: str) -> bool:
        """Return True if the sink is given the table of this full name."""
        tables = self.sink_tables(sink)
        return (self.tables if tables is None else tables).matches_full(table)


def feed_directory(found: Mapping[str, Any]) -> Path:
    """Return the data directory of a feed with these tables. Raises ConfigError."""
    directory = found.get("data_dir", "")
    if not isinstance(directory, str):
        raise ConfigError("data_dir: expected a string")
    return Path(directory) if directory else DATA_DIR


def feed_options(
    found: Mapping[str, Any],
    source_form: config.Form = config.FILE,
    source_given: tuple[SourceKind, SourceOptions] | None = None,
) -> FeedOptions:
    """Build a feed's options. Raises ConfigError for missing, unknown and out-of-range values.

    `source_form` is the form of the source's options. `source_given` has precedence over them.
    """
    if isinstance(found.get("source"), str):
        raise ConfigError(
            'source: expected a table: write [source], and below it url = "…" and tables = ["…"]'
        )
    for key in OF_ANY:
        if key in found:
            raise ConfigError(f"{key}: it is a key of [source] or of a [[sink]]: write it below one of them")
    config.reject_unknown(found, KEYS, "")
    for key, kind in (("name", str), ("until", str), ("sorter", dict)):
        if key in found and not isinstance(found[key], kind):
            raise ConfigError(f"{key}: expected a {'table' if kind is dict else 'string'}")
    if not NAME.fullmatch(found.get("name", DEFAULT_NAME)):
        raise ConfigError("name: up to 64 letters, digits, - and _, for it is part of file names")
    rules = ddl_rules(sections_of("on_ddl", found.get("on_ddl", [])))
    directory = feed_directory(found)
    source = found.get("source", {})
    source_kind, options, tables = _sources(source, source_form, source_given)
    if rules and not source_kind.ddl_policies:
        raise ConfigError(f"on_ddl: a {source_kind.name} source has no such rules; leave the section out")
    filters = filter_rules(sections_of("filter", found.get("filter", [])))
    if any(rule.is_about_statements for rule in filters) and not source_kind.ddl_policies:
        raise ConfigError(f"filter: of a {source_kind.name} source only changes of rows can be dropped")
    sharding, routes = sharding_options(found.get("sharding", {}), found.get("route", []))
    sinks = tuple(sinks_of(found.get("sink", [])))
    if routes:
        _reject_unroutable(source_kind, sinks)
    sorter = {"directory": str(directory / "scratch"), **found.get("sorter", {})}
    if any(sink.omissions.loopback_channel for sink in sinks) and not tables.matches(MARK_SCHEMA, MARK_TABLE):
        raise ConfigError(f'loopback_channel: add "{MARKS}" to source.tables: the marks must be followed')
    return FeedOptions(
        name=found.get("name", DEFAULT_NAME),
        data_dir=directory,
        source_kind=source_kind,
        source=options,
        tables=tables,
        sinks=sinks,
        sorter=config.build(SorterOptions, sorter, "sorter"),
        on_ddl=rules,
        filters=filters,
        transforms=transforms_of(sections_of("transform", found.get("transform", []))),
        sharding=sharding,
        routes=routes,
        until=found.get("until", ""),
    )


def _reject_unroutable(source: SourceKind, sinks: Sequence[SinkOptions]) -> None:
    """Raise ConfigError unless tables of this source can be merged in these sinks."""
    if not source.routable:
        raise ConfigError(f"route: tables of a {source.name} source can't be merged: only MySQL's")
    for sink in sinks:
        if sink.copies_definitions:
            raise ConfigError(
                f'sink {sink.name}: copy = "definition": indexes of shards may not be those of a merged '
                'table: use copy = "columns" with [[route]], and create the indexes yourself'
            )


def _sources(
    source: Any, form: config.Form, given: tuple[SourceKind, SourceOptions] | None
) -> tuple[SourceKind, SourceOptions, TablePatterns]:
    """Return the kind, options and tables of the one source, or of several."""
    if isinstance(source, dict):
        kind, options = given or _source(source, form)
        return kind, options, TablePatterns.parse(_patterns(source))
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
    return strings_of("source.tables", section.get("tables", []))
