"""Options of sinks: the `[[sink]]` sections of a feed.toml."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from ..chain.selection.rule import Rule
from ..chain.selection.sections import RowsOptions, omission_rules, rules_of, share_rule
from ..chain.selection.table_option import TABLES
from ..chain.selection.tables import TablePatterns
from ..config import FILE, Given, NameText, Rest, Variant, build, declaration, name
from ..dialects.options import RowOptions
from ..errors import ConfigError
from ..sink.registry import SINK_FORM, SINKS, GivenSink, given_sink
from ..sink.relay.options import RelayOptions
from ..sink.rules import SinkRules


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """Options of one sink."""

    name: str
    url: str = field(repr=False)
    rules: SinkRules
    """The events of the feed that it gets."""
    section: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Options of its kind, as they were written."""
    given: GivenSink
    """Its kind, with those options."""

    @property
    def copies_definitions(self) -> bool:
        """True if the target has indexes and the like, too."""
        options = self.given.options
        return isinstance(options, RowOptions) and options.copies_definitions


def _variants() -> Iterable[Variant]:
    return (Variant(kind.schemes, kind.options, kind.examples) for kind in SINKS if kind.schemes)


def _relay(written: str | RelayOptions, _: str) -> RelayOptions:
    return RelayOptions(directory=Path(written)) if isinstance(written, str) else written


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSection:
    """One `[[sink]]`: a target, of the kind that its URL names."""

    name: Annotated[str, Given(kind=NameText, parse=name, numbered="sink-{}")]
    """Name of the sink, under which its checkpoint is kept; without one, "sink-" and its number."""
    url: str = field(default="", repr=False)
    """URL of the target."""
    urls: tuple[str, ...] = field(default=(), repr=False)
    """URLs of several targets, in place of `url`: the rows are divided among them."""
    split_by: tuple[str, ...] = ()
    """Columns by which rows are divided; without it, by their primary key."""
    tables: Annotated[TablePatterns | None, TABLES] = None
    """Patterns of the feed's tables that the sink gets, as in `source.tables`; without it, all."""
    regex: str = ""
    """Tables in Canal's notation, in place of `tables`: expressions in one string, separated by commas."""
    black_regex: str = ""
    """Tables that the sink doesn't get, in Canal's notation."""
    rows: tuple[RowsOptions, ...] = ()
    """Rows and changes that the sink gets; without it, all."""
    relay: Annotated[RelayOptions | None, Given(kind=str | RelayOptions, parse=_relay)] = None
    """Durable copy of what the sink is about to apply: a directory, or a table with more options."""
    sync_ddl: bool = True
    """With False, schema changes aren't applied to the target; tables are still created for a snapshot."""
    ignore_txn_commit_ts: tuple[int, ...] = ()
    """Commit timestamps of transactions and schema changes that are left out."""
    rest: Annotated[Mapping[str, Any], Rest(_variants)] = field(repr=False)

    def __post_init__(self) -> None:
        if self.urls:
            self._check_urls()
        elif self.split_by:
            raise ConfigError("split_by: only with urls, among which rows are divided")
        elif not self.url:
            for key in self.rest:
                raise ConfigError(FILE.unknown("", key, declaration(SinkSection).options))
            raise ConfigError('url: missing; for instance "sqlite:///copy.db"')
        if self.tables is not None and (self.regex or self.black_regex):
            raise ConfigError("tables and regex: give one of them")

    def _check_urls(self) -> None:
        if self.url:
            raise ConfigError("url and urls: give one of them")
        if len(self.urls) < 2 or len(set(self.urls)) < len(self.urls):
            raise ConfigError("urls: at least two, each another one; a single target is `url`")
        if len({column.lower() for column in self.split_by}) < len(self.split_by):
            raise ConfigError("split_by: a column is named twice")
        if self.relay is not None:
            raise ConfigError("relay: not with urls, which would share its directory")

    def sinks(self) -> Iterator[SinkOptions]:
        """Yield the sink, or one for each of the `urls`. Raises ConfigError."""
        rows = rules_of(self.rows)
        if not self.urls:
            yield self._sink(self.name, self.url, rows)
        for number, url in enumerate(self.urls):
            own = share_rule(number, len(self.urls), self.split_by)
            yield self._sink(f"{self.name}-{number}", url, (own, *rows))

    def _sink(self, name: str, url: str, rows: tuple[Rule, ...]) -> SinkOptions:
        sink = given_sink(name, url, self.rest)
        options = sink.options
        omissions = omission_rules(sync_ddl=self.sync_ddl, ignore_txn_commit_ts=self.ignore_txn_commit_ts)
        rules = SinkRules(
            tables=self._tables(),
            rows=rows,
            omissions=tuple(omissions),
            loopback_channel=options.channel if isinstance(options, RowOptions) else 0,
            relay=self.relay,
        )
        return SinkOptions(
            name=name,
            url=url,
            rules=rules,
            section=self.rest,
            given=sink,
        )

    def _tables(self) -> TablePatterns | None:
        if not (self.regex or self.black_regex):
            return self.tables
        try:
            return TablePatterns.canal(self.regex, self.black_regex)
        except ConfigError as error:
            raise ConfigError(f"sink {self.name}: {error}") from None


def sinks_of(sections: Sequence[SinkSection], where: str) -> tuple[SinkOptions, ...]:
    """Return the sinks of the sections. Raises ConfigError."""
    sinks = tuple(sink for section in sections for sink in section.sinks())
    names = [sink.name for sink in sinks]
    for one in names:
        if names.count(one) > 1:
            raise ConfigError(f"{where}.name: two sinks are called {one!r}; each needs a name of its own")
    return sinks


Sinks: TypeAlias = Annotated[
    tuple[SinkOptions, ...], Given(name="sink", kind=tuple[SinkSection, ...], parse=sinks_of, form=SINK_FORM)
]
"""Field of the options of a file with `[[sink]]` sections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _SinksOnly:
    sinks: Sinks = ()


def sinks_in(document: Mapping[str, object]) -> dict[str, SinkOptions]:
    """Return the sinks of a feed.toml, or of a file with `[[sink]]` sections alone, by name. Raises
    ConfigError for an option of a sink."""
    sections = {key: value for key, value in document.items() if key == "sink"}
    return {sink.name: sink for sink in build(_SinksOnly, sections, "").sinks}
