"""Rules from sections of a feed.toml: [[filter]], [[on_ddl]], and those of a sink."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...config import build, reject_unknown
from ...errors import ConfigError
from .kinds import DDL_KINDS, KINDS, OPS
from .rule import DDL_ACTIONS, Rule
from .share import Share
from .tables import EVERY_TABLE, TablePatterns
from .where import Where

_ALL: Final = ("*.*",)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterOptions:
    """One `[[filter]]`."""

    tables: tuple[str, ...]
    """Patterns of tables, as in `source.tables`."""
    events: tuple[str, ...] = ()
    """Events that are dropped: of KINDS. Empty: every schema change whose statement matches `sql`."""
    sql: str = ""
    """Regular expression, searched for in the statement of a schema change; empty: all match."""
    where: str = ""
    """Condition on a row's columns. Alone: rows for which it is true aren't in the target. With `events`:
    changes are dropped if it is true for the row before and after them."""

    def rules(self, where: str) -> Iterator[Rule]:
        """Yield the rules about rows, and about schema changes. Raises ConfigError."""
        tables = TablePatterns.parse(self.tables, f"{where}.tables")
        kinds = _events(self.events, KINDS, where)
        ops, ddl_kinds = kinds & set(OPS), kinds & set(DDL_KINDS)
        if not (self.events or self.sql or self.where):
            raise ConfigError(
                f"{where}: without events, sql and where it drops everything: exclude the tables in "
                "source.tables"
            )
        if ops and self.sql:
            raise ConfigError(
                f"{where}.sql: changes of rows ({', '.join(sorted(ops))}) have no statement: give them a "
                "[[filter]] of their own"
            )
        if self.where and (ddl_kinds or self.sql):
            raise ConfigError(
                f"{where}.where: schema changes have no rows: give them a [[filter]] of their own"
            )
        if ops or self.where:
            yield Rule(tables, ops, where=_condition(self.where, where))
        if ddl_kinds or self.sql:
            yield Rule(tables, ddl_kinds or frozenset(DDL_KINDS), _expression(self.sql, where))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsOptions:
    """One `[[sink.rows]]`. Several that match a table all count."""

    tables: tuple[str, ...] = _ALL
    """Patterns of tables, as in `source.tables`; without it, all tables of the sink."""
    where: str = ""
    """Condition on a row's columns: the target has the rows for which it is true. Empty: all rows."""
    events: tuple[str, ...] = OPS
    """Changes of the source that the sink gets: of OPS. Rows of a snapshot always come."""

    def rules(self, where: str) -> Iterator[Rule]:
        """Yield the rules about other rows and changes. Raises ConfigError."""
        tables = TablePatterns.parse(self.tables, f"{where}.tables")
        ops = frozenset(OPS) - _events(self.events, OPS, where)
        if not self.events:
            raise ConfigError(
                f"{where}.events: no change would come: exclude the tables in the sink's tables"
            )
        if not (self.where or ops):
            raise ConfigError(
                f"{where}: where, events: missing; the section chooses no rows without one of them"
            )
        if self.where:
            yield Rule(tables, where=_condition(self.where, where), keeps=True, key="rows")
        if ops:
            yield Rule(tables, ops, key="rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class OmissionOptions:
    """Transactions and schema changes that a sink isn't to get. Raises ConfigError that names the accepted
    values."""

    sync_ddl: bool = True
    """With False, schema changes aren't applied to the target; tables are still created for a snapshot."""
    ignore_txn_commit_ts: tuple[int, ...] = ()
    """Commit timestamps of transactions and schema changes that are left out."""
    loopback_channel: int = 0
    """Number above 0, the same for both directions between two clusters: transactions with a mark of this
    channel came from the target, and are left out; those that are applied get the mark."""

    def __post_init__(self) -> None:
        if self.loopback_channel < 0:
            raise ConfigError(f"loopback_channel = {self.loopback_channel}: a number above 0, or 0 for none")

    @property
    def omits(self) -> bool:
        return self != OmissionOptions()

    def rules(self) -> Iterator[Rule]:
        if not self.sync_ddl:
            yield Rule(kinds=frozenset(DDL_KINDS))
        if self.ignore_txn_commit_ts:
            yield Rule(kinds=frozenset(KINDS), timestamps=frozenset(self.ignore_txn_commit_ts))


def filter_rules(sections: Sequence[Mapping[str, Any]]) -> tuple[Rule, ...]:
    """Return the rules of the [[filter]] sections. Raises ConfigError."""
    return _rules(FilterOptions, "filter", sections)


def row_rules(where: str, sections: Any) -> tuple[Rule, ...]:
    """Return the rules of a sink's [[sink.rows]]. Raises ConfigError that begins with `where`."""
    if not isinstance(sections, list) or not all(isinstance(section, dict) for section in sections):
        raise ConfigError(f"{where}: rows: expected [[sink.rows]] tables")
    return _rules(RowsOptions, f"{where}: rows", sections)


def _rules(
    kind: type[FilterOptions | RowsOptions], name: str, sections: Sequence[Mapping[str, Any]]
) -> tuple[Rule, ...]:
    rules: list[Rule] = []
    for number, section in enumerate(sections, 1):
        where = f"{name} {number}"
        rules += build(kind, section, where).rules(where)
    return tuple(rules)


def share_rules(where: str, section: Mapping[str, Any]) -> list[tuple[str, Rule]]:
    """Return the URLs of a sink with `urls`, each with the rule of its share. Raises ConfigError."""
    urls, columns = section["urls"], section.get("split_by", [])
    for key, value in (("urls", urls), ("split_by", columns)):
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            raise ConfigError(f"{where}: {key}: expected a list of strings")
    if "url" in section:
        raise ConfigError(f"{where}: url and urls: give one of them")
    if len(urls) < 2 or len(set(urls)) < len(urls):
        raise ConfigError(f"{where}: urls: at least two, each another one; a single target is `url`")
    if len({name.lower() for name in columns}) < len(columns):
        raise ConfigError(f"{where}: split_by: a column is named twice")
    shares = [Share(number, len(urls), tuple(columns)) for number in range(len(urls))]
    return [
        (url, Rule(EVERY_TABLE, share=share, keeps=True, key="rows"))
        for url, share in zip(urls, shares, strict=True)
    ]


def ddl_rules(sections: Sequence[Mapping[str, Any]]) -> tuple[Rule, ...]:
    """Return the rules of the [[on_ddl]] sections. Raises ConfigError."""
    return tuple(_ddl_rule(section, f"on_ddl {number}") for number, section in enumerate(sections, 1))


def _ddl_rule(section: Mapping[str, Any], where: str) -> Rule:
    reject_unknown(section, ("tables", "kinds", "action"), where)
    kinds = section.get("kinds", list(DDL_KINDS))
    tables = tables_of(where, section.get("tables"))
    if not isinstance(kinds, list) or not set(map(str, kinds)) <= set(DDL_KINDS):
        raise ConfigError(f"{where}: kinds = {kinds!r}: expected a list of: {', '.join(DDL_KINDS)}")
    if (action := section.get("action")) not in DDL_ACTIONS:
        raise ConfigError(f"{where}: action = {action!r}: one of {', '.join(DDL_ACTIONS)}")
    return Rule(tables, frozenset(kinds), action=action)


def sink_tables(where: str, section: Mapping[str, Any]) -> TablePatterns | None:
    """Return the tables of a sink, by patterns or by Canal's expressions; None: all. Raises ConfigError."""
    given = {key: section[key] for key in ("regex", "black_regex") if key in section}
    if not given:
        return tables_of(where, section["tables"]) if "tables" in section else None
    if "tables" in section:
        raise ConfigError(f"{where}: tables and regex: give one of them")
    for key, text in given.items():
        if not isinstance(text, str):
            raise ConfigError(f"{where}: {key}: expected expressions in one string, separated by commas")
    try:
        return TablePatterns.canal(given.get("regex", ""), given.get("black_regex", ""))
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def tables_of(where: str, patterns: Any) -> TablePatterns:
    """Return the tables of the section `where`. Raises ConfigError that names it."""
    where = f"{where}: tables"
    return TablePatterns.parse(strings_of(where, patterns), where)


def strings_of(where: str, patterns: Any) -> list[str]:
    """Return the patterns, if they are a list of strings. Raises ConfigError."""
    if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
        raise ConfigError(f'{where}: expected a list of patterns, for instance ["shop.*"]')
    return patterns


def _events(events: Sequence[str], accepted: Sequence[str], where: str) -> frozenset[str]:
    for event in events:
        if event not in accepted:
            raise ConfigError(f"{where}.events: {event!r} is none of {', '.join(map(repr, accepted))}")
    return frozenset(events)


def _condition(text: str, where: str) -> Where | None:
    return Where(text, f"{where}.where") if text else None


def _expression(text: str, where: str) -> re.Pattern[str] | None:
    """Return the expression; upper and lower case are the same in it, as in SQL's words."""
    try:
        return re.compile(text, re.IGNORECASE | re.DOTALL) if text else None
    except re.error as error:
        raise ConfigError(f"{where}.sql = {text!r}: not a regular expression: {error}") from None
