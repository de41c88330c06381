"""Bodies of requests and responses of the HTTP API; the client uses them too."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

from ..engine.status import FeedStatus, SinkStatus, State
from ..events import Wait

FeedName: TypeAlias = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Count: TypeAlias = Annotated[int, Meta(ge=0)]


class ErrorDetail(Struct, frozen=True):
    """The reason why a request was refused."""

    code: str
    """Machine-readable reason, such as "not_found"."""
    message: str
    field: str | None = None
    """Key of the body or the query that is wrong, such as "source.url"; null if none is."""


class ErrorBody(Struct, frozen=True):
    """Body of every response with a status of 400 or above."""

    error: ErrorDetail


class SinkSummary(Struct, frozen=True):
    name: str
    target: str
    lag: float | None
    """Seconds that the target is behind the source; null while that isn't known."""


class FeedSummary(Struct, frozen=True):
    """A feed in a list of feeds."""

    name: str
    state: State
    detail: str
    """For a warning, the failure and the next attempt; for a failed feed, the error."""
    source: str
    sinks: list[SinkSummary]
    lag: float | None
    """Lag of the sink furthest behind, in seconds; null while that isn't known."""
    rows: int
    """Number of row changes passed to the sinks since the feed started."""
    rows_per_second: float
    table_states: dict[str, int]
    """Number of tables by state."""
    since: float
    """Time at which the feed entered its state, in Unix seconds."""


class FeedList(Struct, frozen=True):
    feeds: list[FeedSummary]


class FeedDetail(Struct, frozen=True):
    feed: FeedSummary
    status: FeedStatus
    options: dict[str, Any]
    """The feed's document; each secret is "***"."""


class FeedEvent(Struct, frozen=True):
    """Data of the event `feed`."""

    feed: FeedSummary
    status: FeedStatus


class TableStatus(Struct, frozen=True):
    name: str
    state: Literal["loading", "following", "paused", "failed", "removed"]
    since: float
    position: str
    ts: int
    lag_seconds: float | None
    inserts: int
    updates: int
    deletes: int
    error: str
    rows_loaded: int
    rows_estimated: int


class TableList(Struct, frozen=True):
    tables: list[TableStatus]
    total: int
    """Number of tables that match, on all pages."""
    states: dict[str, int]
    """Number of all tables of the feed by state."""


class SinkList(Struct, frozen=True):
    sinks: list[SinkStatus]


class WaitList(Struct, frozen=True):
    explanation: list[str]
    """The waits as sentences."""
    waits: list[Wait]


class Quotas(Struct, frozen=True):
    """Limits that all feeds of the process share."""

    sorter_memory_bytes: int
    """Maximum bytes of changes in the sorters' memory, over all running feeds."""
    sorter_memory_share_bytes: int
    """Part of it for each running feed at present."""
    compute_threads: int
    """Threads that sort and decode, for all feeds."""
    starting_feeds: int
    """Maximum number of feeds that start at the same time."""
    streams: int
    """Maximum number of open event streams."""


class ServerStatus(Struct, frozen=True):
    version: str
    started: float
    """Time at which the server started, in Unix seconds."""
    memory_bytes: int
    """Resident memory of the process."""
    threads: int
    quotas: Quotas
    feeds: dict[str, int]
    """Number of feeds by state."""


class Health(Struct, frozen=True):
    status: Literal["ok"] = "ok"


class Unready(Struct, frozen=True):
    feed: str
    state: State
    detail: str


class Readiness(Struct, frozen=True):
    ready: bool
    feeds: list[Unready] = []
    """Feeds that should run and don't."""
