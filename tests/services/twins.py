"""Two servers with shards of the same schema and names, and the feed that merges them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tidemill.engine.feed import Feed
from tidemill.engine.opening import open_sinks
from tidemill.engine.options import feed_options
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mysql import MySql
from tidemill.testing.progress import feed_ended

TABLES = "item_1", "item_2"


class Twins:
    """Two servers, each with the same schema and tables; their keys are disjoint."""

    def __init__(self, servers: dict[str, MariaDb | MySql], schema: str, directory: Path) -> None:
        self.servers = servers
        self.schema = schema
        self.directory = directory
        self.route: dict[str, Any] = {"tables": [f"{schema}.item_*"], "target": "whole.item"}
        self.sharding: dict[str, Any] = {}
        self.filters: list[dict[str, Any]] = []
        self.sink: dict[str, Any] = {"name": "copy", "url": f"sqlite:///{directory}/copy.db"}
        for start, name in enumerate(servers):
            for number, table in enumerate(TABLES):
                first = 1000 * start + 100 * number
                rows = ", ".join(f"({key}, 0)" for key in range(first, first + 5))
                self.execute(
                    name,
                    f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)",
                    f"INSERT INTO {table} VALUES {rows}",
                )

    def execute(self, name: str, *statements: str) -> list[tuple[Any, ...]]:
        return self.servers[name].execute(*statements, database=self.schema)

    def both(self, *statements: str) -> None:
        for name in self.servers:
            self.execute(name, *statements)

    def found(self) -> dict[str, Any]:
        source = [
            {"name": name, "url": server.url(), "tables": [f"{self.schema}.*"]}
            for name, server in self.servers.items()
        ]
        found = {"source": source, "route": [self.route], "sink": [self.sink], "filter": self.filters}
        if self.sharding:
            found["sharding"] = [self.sharding]
        return found

    def config(self) -> Path:
        lines = ['name = "twins"', f'data_dir = "{self.directory}/state"']
        for name, sections in self.found().items():
            for section in sections:
                lines.append(f"[{name}]" if name == "sharding" else f"[[{name}]]")
                lines += [f"{key} = {json.dumps(value)}" for key, value in section.items()]
        config = self.directory / "feed.toml"
        config.write_text("\n".join(lines) + "\n")
        return config

    def run(self) -> Feed:
        """To the present end of both servers."""
        found = self.found() | {"name": "twins", "data_dir": str(self.directory / "state"), "until": "now"}
        options = feed_options(found | {"sharding": self.sharding})
        feed = Feed(options, open_sinks(options))
        feed.start()
        feed_ended(feed)
        if feed.error is not None:
            raise feed.error
        return feed

    def rows(self, columns: str = "id, v", table: str = "whole.item") -> list[tuple[Any, ...]]:
        """Return the rows of the copy in SQLite."""
        with closing(sqlite3.connect(self.directory / "copy.db")) as copy:
            return copy.execute(f'SELECT {columns} FROM "{table}" ORDER BY 1').fetchall()

    def union(self, columns: str = "id, v") -> list[tuple[Any, ...]]:
        found = [
            row
            for name in self.servers
            for table in TABLES
            for row in self.execute(name, f"SELECT {columns} FROM {table}")
        ]
        return sorted(found)
