"""Requests of people about single tables: checked, and stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Literal, TypeAlias, assert_never

from ..actors import Clock
from ..errors import CheckpointError, ConfigError
from ..events import REST
from ..sink import SinkFactory
from .opening import open_source
from .options import FeedOptions
from .renewal import reject_unrenewable
from .requests import RequestFile, TableRequests
from .table_changes import why_not_single
from .tables import TablesFile, TableStatus

TableVerb: TypeAlias = Literal["pause", "resume", "reload"]


def request_tables(
    verb: TableVerb,
    names: Collection[str],
    options: FeedOptions,
    sinks: Collection[SinkFactory],
    clock: Clock,
    known: Mapping[str, TableStatus] | None = None,
) -> None:
    """Store a request about tables, by full names; with `reload`, REST stands for all of them.

    `known` are the feed's tables by name; by default those of its last run. Raises ConfigError for a table
    that the feed doesn't follow, or whose state doesn't allow it, and if the feed can't load single tables.
    """
    if known is None:
        known = _last_known(options)
    if verb == "reload" and REST in names:
        reject_unrenewable(options)
    else:
        _reject_unable(verb, options, sinks, clock)
    waiting = RequestFile(options.data_dir).load().names
    for name in names:
        if not (verb == "reload" and name == REST):
            _reject_followed_not(name, options, known)
            if name not in waiting:  # that request changes the state yet
                _reject_state(verb, name, known.get(name))
    some = tuple(names)
    match verb:
        case "pause":
            requests = TableRequests(pause=some)
        case "resume":
            requests = TableRequests(resume=some)
        case "reload":
            requests = TableRequests(load_again=some)
        case _:
            assert_never(verb)
    RequestFile(options.data_dir).add(requests)


def _last_known(options: FeedOptions) -> dict[str, TableStatus]:
    with suppress(CheckpointError):
        return {one.name: one for one in TablesFile(options.data_dir).load()}
    return {}


def _reject_unable(
    verb: TableVerb, options: FeedOptions, sinks: Collection[SinkFactory], clock: Clock
) -> None:
    source = open_source(options, clock)
    try:
        why = why_not_single(options, source, {sink.name: sink.traits for sink in sinks})
    finally:
        source.close()
    if why:
        raise ConfigError(f"{verb}: this feed can't load a single table: {why}")


def _reject_followed_not(name: str, options: FeedOptions, known: Mapping[str, TableStatus]) -> None:
    if not options.tables.matches_full(name):
        raise ConfigError(
            f"{name}: the feed doesn't follow this table: its patterns are "
            f"{', '.join(options.tables.patterns)}"
        )
    if known and name not in known:
        raise ConfigError(f"{name}: the feed has no such table: tidemill tables FEED.TOML lists them")


def _reject_state(verb: TableVerb, name: str, table: TableStatus | None) -> None:
    """Raise ConfigError if the table's state doesn't allow it."""
    if table is None:
        return
    is_parked = table.state in ("paused", "failed")
    if verb == "pause" and is_parked:
        raise ConfigError(f"{name}: it is {table.state} already; only a table that is followed can be paused")
    if verb == "resume" and not is_parked:
        raise ConfigError(f"{name}: it is {table.state}; only a paused or failed table can be resumed")
    if verb == "reload" and is_parked:
        raise ConfigError(f"{name}: it is {table.state}: resume it, and it is loaded again")
