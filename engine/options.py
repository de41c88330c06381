"""What a feed is made of, from the tables of a feed.toml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from .. import config
from ..errors import ConfigError
from ..puller.mysql.options import MysqlOptions
from ..puller.tikv.options import TikvOptions, endpoints
from ..routing import TableFilter
from ..sink import PERCENT_ENCODE, Sink, open_sink
from ..sorter import SorterOptions
from .checkpoint import CheckpointFile

DEFAULT_NAME = "tidemill"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
DATA_DIR = Path("tidemill-data")
KEYS = ("name", "data_dir", "until", "source", "sink", "sorter", "capture", "spark")
"""`capture` and `spark` are for the commands that need them, which read them by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """Where one sink writes."""

    name: str
    url: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """The rest of its section, which depends on the kind of sink."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedOptions:
    """Everything a feed needs; checked, but nothing has been connected."""

    name: str = DEFAULT_NAME
    """Whose checkpoints these are: several feeds may write to one database."""
    data_dir: Path = DATA_DIR
    """Status, checkpoints of sinks that can't hold them, and scratch files."""
    source: MysqlOptions | TikvOptions
    tables: TableFilter
    sinks: tuple[SinkOptions, ...] = ()
    sorter: SorterOptions
    until: str = ""
    """A position at which the feed is finished; "now" is the source's end when it starts; empty: none."""


def feed_directory(found: Mapping[str, Any]) -> Path:
    """Where a feed with these tables keeps its files."""
    return Path(found.get("data_dir", DATA_DIR))


def feed_options(found: Mapping[str, Any]) -> FeedOptions:
    """Raises ConfigError for whatever is missing, unknown or out of range."""
    config.reject_unknown(found, KEYS, "")
    for key, kind in (("name", str), ("data_dir", str), ("until", str), ("source", dict), ("sorter", dict)):
        if key in found and not isinstance(found[key], kind):
            raise ConfigError(f"{key}: expected a {'table' if kind is dict else 'string'}")
    if not _NAME.fullmatch(found.get("name", DEFAULT_NAME)):
        raise ConfigError("name: up to 64 letters, digits, - and _, for it is part of file names")
    directory = feed_directory(found)
    source = found.get("source", {})
    sorter = {"directory": str(directory / "scratch"), **found.get("sorter", {})}
    return FeedOptions(
        name=found.get("name", DEFAULT_NAME),
        data_dir=directory,
        source=_source(source),
        tables=TableFilter(_patterns(source)),
        sinks=tuple(_sinks(found.get("sink", []))),
        sorter=config.build(SorterOptions, sorter, "sorter"),
        until=found.get("until", ""),
    )


def _source(section: Mapping[str, Any]) -> MysqlOptions | TikvOptions:
    url = section.get("url")
    if not isinstance(url, str) or not url:
        every = {*config.keys(MysqlOptions), *config.keys(TikvOptions)}
        config.reject_unknown(section, ["url", "tables", *sorted(every)], "source")
        raise ConfigError(
            'source.url: missing; for instance "mysql://user:password@host:3306" or "tikv://pd1:2379,pd2:2379"'
        )
    scheme = url.partition(":")[0]
    if scheme not in config.SOURCES:
        raise ConfigError(f"source.url: no source {scheme!r}; accepted: {', '.join(config.SOURCES)}")
    rest = {key: value for key, value in section.items() if key not in ("url", "tables")}
    if scheme == "tikv":
        known = ["url", "tables", *(key for key in config.keys(TikvOptions) if key != "pd")]
        config.reject_unknown(rest, known, "source")
        return config.build(TikvOptions, {"pd": endpoints(url), **rest}, "source")
    config.reject_unknown(rest, ["url", "tables", *config.keys(MysqlOptions)], "source")
    return config.build(MysqlOptions, {**_address(url), **rest}, "source")


def _address(url: str) -> dict[str, Any]:
    """Host, port, user and password, as far as they are given."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        # The error's own text could hold a part of the password.
        reason = PERCENT_ENCODE if "@" in url else str(error)
        raise ConfigError(f"source.url: {reason}") from None
    rest = parts.path.strip("/") + parts.query + parts.fragment
    if "@" in rest:
        raise ConfigError(f"source.url: {PERCENT_ENCODE}")
    if rest:
        raise ConfigError("source.url: ends after host and port; the tables are chosen by source.tables")
    given: dict[str, Any] = {"host": parts.hostname, "port": port}
    given |= {
        "user": unquote(parts.username) if parts.username else None,
        "password": unquote(parts.password) if parts.password else None,
    }
    return {key: value for key, value in given.items() if value is not None}


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
        config.reject_unknown(section, ("name", "url"), f"sink {number}")
    if not isinstance(url, str) or not url:
        raise ConfigError(f'sink {number}: url: missing; for instance "sqlite:///copy.db"')
    name = section.get("name", f"sink-{number}")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(f"sink {number}: name: expected up to 64 letters, digits, - and _")
    rest = {key: value for key, value in section.items() if key not in ("url", "name")}
    return SinkOptions(name=name, url=url, options=rest)


def open_sinks(options: FeedOptions) -> list[Sink]:
    """The sinks that the options name, not opened yet. Raises ConfigError."""
    return [
        open_sink(
            sink.name,
            sink.url,
            feed=options.name,
            store=checkpoint_file(options, sink.name),
            options=sink.options,
        )
        for sink in options.sinks
    ]


def make_data_dir(options: FeedOptions) -> None:
    """Raises ConfigError if it can't be made."""
    try:
        options.data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"data_dir: {options.data_dir}: {error.strerror}") from None


def checkpoint_file(options: FeedOptions, sink: str) -> CheckpointFile:
    """Where the checkpoint of a sink is kept whose target can't."""
    return CheckpointFile(options.data_dir / f"{options.name}.{sink}.checkpoint")
