"""Feeds that show what a test says, behind the real API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from tidemill.actors import SystemClock
from tidemill.engine.feed import Feed
from tidemill.engine.lag import Lag
from tidemill.engine.options import FeedOptions, feed_options
from tidemill.engine.status import FeedStatus, SinkStatus, first_status
from tidemill.events import Wait
from tidemill.server.asgi import application
from tidemill.server.history import History
from tidemill.server.hosted import HostedFeed
from tidemill.server.model.tables import TableStatus
from tidemill.server.registry import Registry
from tidemill.server.security import Access
from tidemill.server.serving import HttpServer

CLOCK = SystemClock()
SOURCE = "mysql://repl@db:3306"


class RecordedFeed(HostedFeed):
    """A feed with a status, tables and waits that a test sets."""

    is_managed = True
    should_run = True

    def __init__(self, name: str, tables: list[TableStatus] | None = None, **status: Any) -> None:
        super().__init__(name, CLOCK, History())
        first = first_status(name, SOURCE, [sink_status("copy")], state="normal", now=CLOCK.time())
        self.listed = tables or []
        states = dict(Counter(table.state for table in self.listed))
        self.shown = replace(first, **{"idle": True, "table_states": states, **status})
        self.waiting: list[Wait] = []

    @property
    def feed(self) -> Feed | None:
        return None

    def set(self, **status: Any) -> None:
        self.shown = replace(self.shown, updated=CLOCK.time(), **status)

    def status(self) -> FeedStatus:
        return self.shown

    def options(self) -> FeedOptions:
        return feed_options(self.document())

    def document(self) -> Mapping[str, Any]:
        return {
            "name": self.name,
            "data_dir": f"/var/lib/tidemill/{self.name}",
            "source": {"url": SOURCE, "tables": ["shop.*"]},
            "sink": [{"name": "copy", "url": "mysql://etl@warehouse/copy"}],
        }

    def tables(self) -> list[TableStatus]:
        return self.listed

    def waits(self) -> list[Wait]:
        return self.waiting


def sink_status(name: str, seconds: float | None = 0.2, **fields: Any) -> SinkStatus:
    return replace(
        SinkStatus(
            name=name,
            target="mysql://etl@warehouse/copy",
            position="binlog.000012:884411",
            ts=1,
            lag_seconds=seconds,
            lag=Lag(total=seconds),
            rows=1_234_567,
        ),
        **fields,
    )


def table_status(name: str, state: str = "following", **fields: Any) -> TableStatus:
    given: dict[str, Any] = {
        "name": name,
        "state": state,
        "since": CLOCK.time() - 3_600,
        "position": "binlog.000012:884411",
        "ts": 1,
        "lag_seconds": 0.2,
        "inserts": 0,
        "updates": 0,
        "deletes": 0,
        "error": "",
        "rows_loaded": 0,
        "rows_estimated": 0,
    }
    return TableStatus(**(given | fields))


@contextmanager
def served(
    *feeds: HostedFeed, listen: str = "127.0.0.1:0", access: Access | None = None
) -> Iterator[HttpServer]:
    with (
        Registry(feeds) as registry,
        HttpServer(application(registry, access or Access()), listen) as server,
    ):
        yield server
