"""Options of merged tables: `[sharding]` and `[[route]]` of a feed.toml."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

from msgspec import Meta

from ..chain.selection.name_pattern import NamePattern
from ..chain.selection.tables import TablePatterns
from ..config import Given
from ..errors import ConfigError
from .extractor import Extractor, NamePart
from .target import TargetName

Mode: TypeAlias = Literal["pessimistic", "optimistic", "off"]
"""Coordination of a schema change that each shard makes: executed once all shards have made it; at the first
shard if it widens the table, and at the last one otherwise; or none, so that it is an error."""
OnDrop: TypeAlias = Literal["keep", "error"]
"""Treatment of a shard's DROP and TRUNCATE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractorOptions:
    """One `[[route.extract]]`."""

    column: str
    """Column of the merged table; no shard may have it."""
    part: NamePart
    """Name that it is extracted from."""
    regex: str = ""
    """Matches the whole name; its groups, joined, are the value. Empty: the name itself."""
    in_key: bool = True
    """Append the column to the primary key, so that equal keys of different shards are different rows."""

    def __post_init__(self) -> None:
        if not self.column:
            raise ConfigError("column: empty; name a column that no shard has")


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteOptions:
    """One `[[route]]`."""

    tables: tuple[str, ...]
    """Patterns of the shards, as in `source.tables`."""
    target: str
    """The merged table, as "schema.table": `{source}`, `{schema}` and `{table}` in it are those of the shard,
    and `{table.1}` is the first group of the table's regular expression in the pattern that matches it."""
    source: str = "*"
    """Pattern of the names of sources: with `*` and `?` as wildcards, or a regular expression after `~`."""
    case_sensitive: bool = True
    """Tell upper and lower case apart in the patterns."""
    extract: tuple[ExtractorOptions, ...] = ()
    """Columns that say where a row comes from."""


class EtcdPlace(NamedTuple):
    endpoints: tuple[str, ...]
    """Addresses as "host:port"."""
    name: str
    """Name of the coordination: several may be in one etcd."""


_ETCD: Final = re.compile(r"etcd://([^/,\s]+:\d+(?:,[^/,\s]+:\d+)*)/([A-Za-z0-9_-]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardingOptions:
    """`[sharding]`. Raises ConfigError that names the accepted values."""

    mode: Mode = "pessimistic"
    """With "off", a schema change of a table that is merged with others is an error."""
    max_held_rows: Annotated[int, Meta(ge=0)] = 100_000
    """Maximum number of rows held for shards that wait; beyond it they are read again from the source."""
    on_drop: OnDrop = "keep"
    """With "keep", rows of a dropped or truncated shard stay in the merged table, as in DM."""
    online_ddl: bool = True
    """Follow gh-ost and pt-online-schema-change: their tables, `_NAME_gho` and the like, are left out, and a
    shard changes by the rename."""
    conflict_seconds: Annotated[float, Meta(ge=0)] = 3600.0
    """Maximum time for which a shard waits in the optimistic mode, if its change conflicts with those of
    others: until one of them is undone. 0: a conflict stops the feed at once."""
    check_keys: bool = True
    """Compare the keys of all shards before the first load, and refuse duplicates."""

    coordination: str = "process"
    """Where several feeds that write into the same merged tables agree on schema changes: "target", in tables
    of the target, or "etcd://HOST:PORT,.../NAME". With "process", this feed has all shards."""

    def __post_init__(self) -> None:
        if self.conflict_seconds == math.inf:
            raise ConfigError("conflict_seconds = inf: 0 or more seconds")
        if self.coordination not in ("process", "target") and self.etcd is None:
            raise ConfigError(
                f'coordination = {self.coordination!r}: one of "process", "target", '
                '"etcd://HOST:PORT,.../NAME"'
            )
        if self.is_shared and self.mode != "pessimistic":
            raise ConfigError(
                f'mode = "{self.mode}": several feeds that share merged tables change them in the '
                'pessimistic mode only: set mode = "pessimistic", or give all shards to one feed, with '
                'coordination = "process"'
            )

    @property
    def is_shared(self) -> bool:
        """True if other feeds may write into the same merged tables."""
        return self.coordination != "process"

    @property
    def etcd(self) -> EtcdPlace | None:
        """Return the place in etcd; None if it isn't there."""
        match = _ETCD.fullmatch(self.coordination)
        return None if match is None else EtcdPlace(tuple(match[1].split(",")), match[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRule:
    """A checked route."""

    number: int
    source: NamePattern
    tables: TablePatterns
    target: TargetName
    extractors: tuple[Extractor, ...] = ()

    def matches(self, source: str, schema: str, table: str) -> bool:
        return self.source.matches(source) and self.tables.matches(schema, table)

    @property
    def columns(self) -> list[tuple[str, bool]]:
        """Columns that the route fills, with True for those of the key."""
        return [(one.column.name, one.in_key) for one in self.extractors]


def _rules(sections: Sequence[RouteOptions], where: str) -> tuple[RouteRule, ...]:
    """Return the checked routes of the sections. Raises ConfigError."""
    rules = tuple(_rule(number, section, f"{where} {number}") for number, section in enumerate(sections, 1))
    _reject_different_extractors(rules)
    return rules


def _rule(number: int, section: RouteOptions, where: str) -> RouteRule:
    ignores_case = not section.case_sensitive
    source = NamePattern(section.source, f"{where}.source", ignores_case=ignores_case)
    tables = TablePatterns.parse(section.tables, f"{where}.tables", ignores_case=ignores_case)
    extractors = tuple(
        Extractor(one.column, one.part, one.regex, in_key=one.in_key, where=f"{where}.extract {index}")
        for index, one in enumerate(section.extract, 1)
    )
    names = [one.column.name.lower() for one in extractors]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{where}.extract: two of them fill column {name!r}: give each its own")
    return RouteRule(
        number=number,
        source=source,
        tables=tables,
        target=TargetName(section.target, source, tables, f"{where}.target"),
        extractors=extractors,
    )


def _reject_different_extractors(rules: Sequence[RouteRule]) -> None:
    """Raise ConfigError if routes to one table fill different columns."""
    known: dict[str, RouteRule] = {}
    for rule in rules:
        first = known.setdefault(rule.target.text, rule)
        if rule.columns != first.columns:
            raise ConfigError(different_columns(rule, first, rule.target.text))


def different_columns(rule: RouteRule, first: RouteRule, target: str) -> str:
    return (
        f"route {rule.number}: fills other columns of {target} than route {first.number}: give both the same "
        "extractors, by column and in_key"
    )


_UNSAID: Final = ShardingOptions()


@dataclass(frozen=True, kw_only=True)
class MergeOptions:
    """The sections about merged tables."""

    sharding: ShardingOptions = _UNSAID
    """How shards' schema changes become those of the merged tables."""
    routes: Annotated[
        tuple[RouteRule, ...], Given(name="route", kind=tuple[RouteOptions, ...], parse=_rules)
    ] = ()
    """Merged tables, and the tables that go into each."""

    def __post_init__(self) -> None:
        if self.sharding is not _UNSAID and not self.routes:
            raise ConfigError(
                "sharding: no [[route]] names a merged table: add one, such as "
                'tables = ["shop_*.orders_*"], target = "shop.orders"'
            )
