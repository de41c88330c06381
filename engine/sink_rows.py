"""The rows that a sink gets: its `rows` sections, and its share where it is one of several `urls`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..chain.selection.condition import Chosen
from ..chain.selection.row_filter import RowFilter
from ..chain.selection.share import Share
from ..chain.selection.tables import TablePatterns
from ..config import build
from ..errors import ConfigError
from .filters import OPS

_ALL: Final = ("*.*",)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsOptions:
    """One `[[sink.rows]]`. Several that match a table all count."""

    tables: tuple[str, ...] = _ALL
    """Patterns of tables, as in `source.tables`; without it, all tables of the sink."""
    where: str = ""
    """Condition on a row's columns: the target has the rows for which it is true. Empty: all rows."""
    events: tuple[str, ...] = OPS
    """Changes of the source that the sink gets: of OPS. Rows of a snapshot always come."""


def rows_of(where: str, sections: Any) -> tuple[RowFilter, ...]:
    """Return the filters of a sink's sections. Raises ConfigError that begins with `where`."""
    if not isinstance(sections, list) or not all(isinstance(section, dict) for section in sections):
        raise ConfigError(f"{where}: rows: expected [[sink.rows]] tables")
    return tuple(
        one for number, section in enumerate(sections, 1) for one in _rows(f"{where}: rows {number}", section)
    )


def _rows(where: str, section: Mapping[str, Any]) -> Iterator[RowFilter]:
    found = build(RowsOptions, section, where)
    tables = TablePatterns.parse(found.tables, f"{where}.tables")
    for event in found.events:
        if event not in OPS:
            raise ConfigError(f"{where}.events: {event!r} is none of {', '.join(map(repr, OPS))}")
    if not found.events:
        raise ConfigError(f"{where}.events: no change would come: exclude the tables in the sink's tables")
    if not found.where and set(found.events) == set(OPS):
        raise ConfigError(f"{where}: where, events: missing; the section chooses no rows without one of them")
    if found.where:
        yield RowFilter(tables, where=Chosen(found.where, f"{where}.where"))
    if ops := frozenset(OPS) - frozenset(found.events):
        yield RowFilter(tables, ops)


def shares_of(where: str, section: Mapping[str, Any]) -> list[tuple[str, RowFilter]]:
    """Return the URLs of a sink with `urls`, each with the filter of its share. Raises ConfigError."""
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
    everything, count = TablePatterns.parse(_ALL), len(urls)
    return [
        (url, RowFilter(everything, where=Share(number, count, tuple(columns))))
        for number, url in enumerate(urls)
    ]
