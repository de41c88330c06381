"""The place where a fault is made: servers and a feed of its own."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import pymysql

from ...engine.feed import Feed
from ...engine.opening import open_sinks
from ...engine.options import feed_options
from ...engine.status import FeedStatus
from ..certificates import Authority
from ..mariadb import PASSWORD, MariaDb
from ..progress import eventually, feed_ended
from ..proxy import Proxy

USER = "feeder"
ROWS = "INSERT INTO shop.item (name) SELECT REPEAT('x', {size}) FROM shop.seq_1_to_{count}"


class Place:
    """A source and a target, each started once it is needed, and the feed between them."""

    def __init__(self, directory: Path, template: Path, stack: ExitStack) -> None:
        self.directory = directory
        self.template = template
        self.stack = stack
        self.feed: Feed
        self.document: dict[str, Any] = {}

    # --- servers

    @cached_property
    def from_(self) -> MariaDb:
        return self.source()

    @cached_property
    def to(self) -> MariaDb:
        return self.server("target")

    def server(self, name: str, *options: str) -> MariaDb:
        server = MariaDb(self.directory / name, *options, template=self.template)
        self.stack.enter_context(server)
        server.execute(
            f"CREATE USER {USER}@'%' IDENTIFIED BY '{PASSWORD}'",
            f"GRANT ALL ON *.* TO {USER}@'%'",
            f"REVOKE SUPER, READ_ONLY ADMIN, CONNECTION ADMIN ON *.* FROM {USER}@'%'",
        )
        return server

    def source(self, *options: str) -> MariaDb:
        self.from_ = self.server("source", *options)
        self.at_source(
            "CREATE DATABASE shop",
            "CREATE TABLE shop.item (id INT AUTO_INCREMENT PRIMARY KEY, name LONGTEXT)",
            "INSERT INTO shop.item VALUES (1, 'first')",
        )
        return self.from_

    def at_source(self, *statements: str) -> None:
        self.from_.execute(*statements)

    def at_target(self, *statements: str) -> None:
        self.to.execute(*statements)

    def write(self, count: int = 1, size: int = 10) -> None:
        self.at_source(ROWS.format(size=size, count=count))

    # --- the feed

    def start(
        self,
        source: str = "",
        sink: str = "",
        *,
        healthy: bool = True,
        sinks: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """Start a feed; wait until it is healthy."""
        section = {
            "url": source or url_of(self.from_.port),
            "tables": ["shop.*"],
            **({} if "://" in source and not source.startswith("mysql") else {"retry_longest_seconds": 1}),
            **more.pop("section", {}),
        }
        self.document = {
            "name": "copy",
            "data_dir": str(self.directory / "state"),
            "source": section,
            "sink": [{"name": "copy", "url": sink or url_of(self.to.port), **(sinks or {})}],
            **more,
        }
        self.start_again(healthy=healthy)

    def start_again(self, *, healthy: bool = True) -> None:
        options = feed_options(self.document)
        feed = self.feed = Feed(options, open_sinks(options))
        feed.start()
        self.stack.callback(stop, feed)
        if healthy:
            eventually(lambda: feed.error or is_healthy(feed.status()))
            assert feed.error is None, feed.error

    def freezable(self, server: MariaDb) -> Proxy:
        return self.stack.enter_context(Proxy(server.host, server.port))

    def hold(self, server: MariaDb, *statements: str) -> None:
        """Run statements in a session that stays open."""
        session = server.connect(autocommit=False)
        self.stack.callback(session.close)
        with session.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def occupy(self, server: MariaDb) -> None:
        """Open sessions until the server takes no more."""
        for _ in range(20):
            try:
                self.hold(server)
            except pymysql.err.OperationalError:
                return

    def is_purged(self) -> bool:
        """Purge all but the source's last binlog; return False if one is still being read."""
        with self.from_.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SHOW BINARY LOGS")
            *_, (last, *_) = cursor.fetchall()
            cursor.execute(f"PURGE BINARY LOGS TO '{last}'")
            cursor.execute("SHOW BINARY LOGS")
            return len(cursor.fetchall()) == 1

    def kill_sessions(self, server: MariaDb) -> None:
        """End the sessions of the feed."""
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT id FROM information_schema.processlist WHERE user = '{USER}'")
            for (number,) in cursor.fetchall():
                with suppress(pymysql.err.Error):  # it has ended meanwhile
                    cursor.execute(f"KILL {number}")


def url_of(port: int, password: str = PASSWORD, host: str = "127.0.0.1") -> str:
    return f"mysql://{USER}:{password}@{host}:{port}/"


def stop(feed: Feed) -> None:
    feed.stop()
    feed_ended(feed)


def authority(place: Place) -> str:
    """Return the file of a CA that has signed nothing."""
    return str(Authority(place.directory / "authority").ca)


def is_healthy(status: FeedStatus) -> bool:
    return status.state == "normal" and all(sink.ts and not sink.loading for sink in status.sinks)
