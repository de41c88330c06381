"""Options of a feed: the sections of a feed.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from .. import config
from ..chain.selection.rule import Rule
from ..chain.selection.sections import DdlOptions, FilterOptions, ddl_rules, rules_of
from ..chain.selection.tables import TablePatterns
from ..chain.transform.options import TransformOptions, transforms_of
from ..chain.transform.transform import Transform
from ..config import Given, NameText
from ..dialects.options import MARK_SCHEMA, MARK_TABLE, MARKS
from ..errors import ConfigError
from ..sharding import MergeOptions, Routes
from ..sink.rules import SinkRules
from ..sorter import SorterOptions
from ..sources.registry import OF_ANY
from ..sources.sections import GivenSource, NamedSource, SourceSection
from ..sources.several_options import given_source
from .sink_options import Sinks
from .telemetry import TelemetryOptions
from .verification import VerifyOptions

DEFAULT_NAME = "tidemill"
DATA_DIR = Path("tidemill-data")


def _directory(text: str, _: str) -> Path:
    return Path(text) if text else DATA_DIR


@dataclass(frozen=True, kw_only=True)
class StoreOptions:
    """The places of a feed's files."""

    data_dir: Annotated[Path, Given(kind=str, parse=_directory)] = DATA_DIR
    """Directory of the status, checkpoints of sinks that can't hold them, and scratch files."""
    sorter: SorterOptions = field(default_factory=SorterOptions)
    """Memory and disk for changes that aren't delivered yet."""

    def __post_init__(self) -> None:
        if self.sorter.directory is None:
            sorter = replace(self.sorter, directory=self.data_dir / "scratch")
            object.__setattr__(self, "sorter", sorter)  # its default depends on another field


@dataclass(frozen=True, kw_only=True)
class FeedOptions(StoreOptions, MergeOptions):
    """A feed; its options are checked, but nothing is connected."""

    name: Annotated[str, Given(kind=NameText, parse=config.name)] = DEFAULT_NAME
    """Name of the feed, by which checkpoints are kept: several feeds may write to one database."""
    until: str = ""
    """A position at which the feed is finished; "now" is the source's end when it starts; empty: none."""
    source: Annotated[GivenSource, Given(kind=SourceSection | tuple[NamedSource, ...], parse=given_source)]
    """The source, or several, each with a name."""
    sinks: Sinks = ()
    """Targets; without any, the feed is for `tidemill capture` or `tidemill backfill --keep`."""
    on_table_error: Literal["stop", "park"] = "stop"
    """Effect of an error about one table: stop the feed, or park the table, so that the others go on."""
    on_ddl: Annotated[tuple[Rule, ...], Given(kind=tuple[DdlOptions, ...], parse=ddl_rules)] = ()
    """Rules about schema changes of tables; the last one that matches wins. Without one they are applied."""
    filters: Annotated[
        tuple[Rule, ...], Given(name="filter", kind=tuple[FilterOptions, ...], parse=rules_of)
    ] = ()
    """Events that are dropped."""
    transforms: Annotated[
        tuple[Transform, ...], Given(name="transform", kind=tuple[TransformOptions, ...], parse=transforms_of)
    ] = ()
    """Changes of columns and values, before any sink."""
    telemetry: TelemetryOptions = field(default_factory=TelemetryOptions)
    """Metrics pushed by OpenTelemetry."""
    verify: VerifyOptions | None = None
    """Continuous comparison of the source with the targets, by the feed itself; without the section, none."""
    capture: object = None
    """Options of `tidemill capture`, which reads them."""
    spark: object = None
    """Options of Spark, which the commands that start it read."""

    def __post_init__(self) -> None:
        StoreOptions.__post_init__(self)
        MergeOptions.__post_init__(self)
        kind = self.source.kind
        if self.on_ddl and not kind.ddl_policies:
            raise ConfigError(f"on_ddl: a {kind.name} source has no such rules; leave the section out")
        if any(rule.is_about_statements for rule in self.filters) and not kind.ddl_policies:
            raise ConfigError(f"filter: of a {kind.name} source only changes of rows can be dropped")
        if self.routes:
            self._check_routable()
        names = [sink.name for sink in self.sinks]
        if self.verify is not None and (unknown := sorted({*self.verify.sinks} - {*names})):
            known = ", ".join(names) or "none"
            raise ConfigError(f"verify.sinks: {', '.join(unknown)}: no such sink; the feed has {known}")
        has_marks = any(sink.rules.loopback_channel for sink in self.sinks)
        if has_marks and not self.source.tables.matches(MARK_SCHEMA, MARK_TABLE):
            raise ConfigError(f'loopback_channel: add "{MARKS}" to source.tables: the marks must be followed')

    def _check_routable(self) -> None:
        if not self.source.kind.routable:
            name = self.source.kind.name
            raise ConfigError(f"route: tables of a {name} source can't be merged: only MySQL's")
        for sink in self.sinks:
            if sink.copies_definitions:
                raise ConfigError(
                    f'sink {sink.name}: copy = "definition": indexes of shards may not be those of a merged '
                    'table: use copy = "columns" with [[route]], and create the indexes yourself'
                )

    @property
    def tables(self) -> TablePatterns:
        """Tables that the feed follows."""
        return self.source.tables

    @property
    def merging(self) -> Routes:
        return Routes(self.routes, online_ddl=self.sharding.online_ddl)

    def reject_local_only(self, who: str) -> None:
        """Raise ConfigError if tables are merged or transformed, or events filtered, which `who` can't do."""
        if self.routes:
            raise ConfigError(f"route: {who} can't merge tables: only tidemill run with --engine local can")
        self.reject_filters(who)

    def reject_parking(self, who: str) -> None:
        """Raise ConfigError if tables are parked after errors, which `who` can't do."""
        if self.on_table_error == "park":
            raise ConfigError(
                f"on_table_error: {who} can't park a table: only tidemill run with --engine local can; set "
                '"stop"'
            )

    def reject_verification(self, who: str) -> None:
        """Raise ConfigError if targets are to be verified, which `who` can't do."""
        if self.verify is not None:
            raise ConfigError(
                f"verify: {who} can't verify targets: only tidemill run with --engine local and tidemill "
                "serve can; leave the section out, and compare by tidemill diff"
            )

    def reject_filters(self, who: str) -> None:
        """Raise ConfigError if events are filtered, which `who` can't do."""
        if self.filters:
            raise ConfigError(f"filter: {who} has no filters: only tidemill run with --engine local has")
        if self.transforms:
            raise ConfigError(f"transform: {who} can't do that: only tidemill run with --engine local can")
        for sink in self.sinks:
            if sink.rules.rows:
                raise ConfigError(
                    f"sink {sink.name}: rows and urls: {who} can't choose among rows: only tidemill run with "
                    "--engine local can"
                )

    def wants(self, sink: SinkRules, table: str) -> bool:
        """Return True if the sink with these rules is given the table of this full name."""
        is_given = sink.tables is None or sink.tables.matches_full(table)
        return is_given and self.tables.matches_full(table)


F = TypeVar("F", bound=FeedOptions)


def feed_options(document: Mapping[str, object], source: GivenSource | None = None) -> FeedOptions:
    """Build a feed's options. Raises ConfigError for missing, unknown and out-of-range values.

    `source` is the source of a program that made its options itself.
    """
    return built_feed(FeedOptions, document, source)


def built_feed(cls: type[F], document: Mapping[str, object], source: GivenSource | None = None) -> F:
    """Build options of a feed with more sections. Raises ConfigError."""
    if source is not None:
        return config.build(cls, document, "", known={"source": source})
    if isinstance(document.get("source"), str):
        raise ConfigError(
            'source: expected a table: write [source], and below it url = "…" and tables = ["…"]'
        )
    for key in OF_ANY:
        if key in document:
            raise ConfigError(f"{key}: it is a key of [source] or of a [[sink]]: write it below one of them")
    return config.build(cls, {"source": {}, **document}, "")
