"""What stands in the way of a feed, found without changing anything."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sqlalchemy import URL, create_engine, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from .feed import reject_duplicates
from .options import FeedOptions, SinkOptions, open_sinks
from .puller.mysql.requirements import check as check_source


@dataclass(frozen=True, slots=True)
class Finding:
    level: Literal["ok", "warning", "error"]
    about: str
    """The source, or a sink's name."""
    text: str


def check_feed(options: FeedOptions) -> list[Finding]:
    """Connect to the source and every target. Raises ConfigError for what needs no connection."""
    sinks = open_sinks(options)
    reject_duplicates(sinks)
    found = list(_source(options))
    for sink in options.sinks:
        found += _sink(sink)
    return found


def _source(options: FeedOptions) -> Iterator[Finding]:
    survey = check_source(options.source, options.tables.matches)
    if survey.server:
        yield Finding("ok", "source", survey.server)
    for table in survey.tables:
        key = ", ".join(table.table.columns[i].name for i in table.table.key) or "no key"
        rows = f"about {table.rows_estimated:,} rows"
        yield Finding("ok", "source", f"follows {table.table.full_name} ({key}; {rows})")
    names = [(table.table.schema, table.table.name) for table in survey.tables]
    if survey.tables:
        for pattern in options.tables.unmatched(names):
            yield Finding("error", "source", f"the pattern {pattern!r} matches no table")
    for finding in survey.findings:
        yield Finding(finding.severity, "source", finding.text)


def _sink(sink: SinkOptions) -> Iterator[Finding]:
    scheme, _, path = sink.url.partition(":")
    try:
        url = None if scheme == "file" else make_url(sink.url)
    except ArgumentError as error:
        yield Finding("error", sink.name, str(error))
        return
    if url is None:
        yield _file(sink.name, Path(path.removeprefix("//")))
    elif url.get_backend_name() == "sqlite":
        yield _file(sink.name, Path(url.database or ""))
    else:
        yield _server(sink.name, url)


def _file(name: str, path: Path) -> Finding:
    """Whether a file can be written, or made."""
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    if os.access(place, os.W_OK) and (place.is_dir() or place == path):
        return Finding("ok", name, f"{path} {'is there' if path.exists() else 'will be made'}")
    return Finding("error", name, f"{path} can't be written: {place} is not writable")


def _server(name: str, url: URL) -> Finding:
    engine = create_engine(url.set(drivername="mysql+pymysql", database=""))
    try:
        with engine.connect():
            return Finding("ok", name, f"{url.host} answers")
    except SQLAlchemyError as error:
        return Finding("error", name, f"{url.host} can't be reached: {getattr(error, 'orig', error)}")
    finally:
        engine.dispose()
