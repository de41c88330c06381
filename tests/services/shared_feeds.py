"""Feeds of several processes that write shards of one MariaDB server into one merged table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pymysql

from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.testing.child import CLI, Child
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.progress import feed_ended

TABLES = {"north": ["item_1", "item_2"], "south": ["item_3"]}


class SharedFeeds:
    """Feeds by name, each with tables of `schema`; all go into the table `item` of the target."""

    def __init__(self, server: MariaDb, schema: str, directory: Path, target: dict[str, Any]) -> None:
        self.server = server
        self.schema = schema
        self.directory = directory
        self.target = target
        self.coordination = "target"
        self.tables = {name: list(tables) for name, tables in TABLES.items()}
        self.settings: dict[str, Any] = {}
        self.source_names: dict[str, str] = {}
        for number, table in enumerate(self._all):
            self.execute(
                f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)",
                f"INSERT INTO {table} SELECT seq, 0 FROM seq_{number * 100 + 1}_to_{number * 100 + 20}",
            )

    @property
    def _all(self) -> list[str]:
        return [table for tables in self.tables.values() for table in tables]

    @property
    def running(self) -> str:
        """Names of the feeds that run, as the target has them."""
        table = f"{self.schema}_copy.tidemill_coordination"
        alive = "name LIKE 'feed/%' AND expires > UNIX_TIMESTAMP()"
        with suppress(pymysql.MySQLError):  # before the first of them
            return str(self.execute(f"SELECT name FROM {table} WHERE {alive}"))
        return ""

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        return self.server.execute(*statements, database=self.schema)

    def found(self, name: str) -> dict[str, Any]:
        tables = [f"{self.schema}.{table}" for table in self.tables[name]]
        source = {"url": self.server.url(), "tables": tables}
        named = self.source_names.get(name)
        return {
            "name": name,
            "data_dir": str(self.directory / name),
            "source": source if named is None else [{"name": named, **source}],
            "sharding": {"coordination": self.coordination, **self.settings},
            "route": [{"tables": ["*.item_*"], "target": "whole.item"}],
            "sink": [self.target],
        }

    def load(self) -> None:
        """Load the shards of all feeds at the same time."""
        for feed in [self._start(name) for name in self.tables]:
            _ended(feed)

    def run(self, *names: str) -> list[Feed]:
        """Each to the server's present end, one after the other."""
        return [_ended(self._start(name)) for name in names]

    def _start(self, name: str) -> Feed:
        options = feed_options(self.found(name) | {"until": "now"})
        feed = Feed(options, open_sinks(options))
        feed.start()
        return feed

    def config(self, name: str) -> Path:
        found = self.found(name)
        lines = [f"{key} = {json.dumps(found[key])}" for key in ("name", "data_dir")]
        for key in ("sharding", "source", "route", "sink"):
            sections = found[key] if isinstance(found[key], list) else [found[key]]
            for section in sections:
                lines.append(f"[[{key}]]" if isinstance(found[key], list) else f"[{key}]")
                lines += [f"{one} = {json.dumps(value)}" for one, value in section.items()]
        config = self.directory / f"{name}.toml"
        config.write_text("\n".join(lines) + "\n")
        return config

    @contextmanager
    def child(self, name: str, failpoint: str = "", *arguments: str) -> Iterator[Child]:
        """A process that runs the feed."""
        log = self.directory / f"{name}.log"
        with Child([*CLI, "run", self.config(name), *arguments], log, failpoint=failpoint) as child:
            yield child

    def union(self, columns: str) -> list[tuple[Any, ...]]:
        parts = " UNION ALL ".join(f"SELECT {columns} FROM {table}" for table in self._all)
        return self.execute(f"SELECT {columns} FROM ({parts}) AS shards ORDER BY id")


def _ended(feed: Feed) -> Feed:
    feed_ended(feed)
    if feed.error is not None:
        raise feed.error
    return feed
