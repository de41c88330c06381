"""Feeds, the process that runs them, and what users ask of them."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from ...engine.condition import Condition
from ...engine.status import FeedStatus, SinkStatus, State
from ...events import Wait

DOCUMENT: Final = "FeedDocument"
"""Name of the schema of a feed's document."""
Document: TypeAlias = Annotated[
    dict[str, Any], Meta(extra_json_schema={"$ref": f"#/components/schemas/{DOCUMENT}"})
]
"""The document of a feed.toml; its values are checked when the feed's options are built of it."""
MAX_HISTORY: Final = 500
"""Maximum number of entries of a feed's history."""
EntryKind: TypeAlias = Literal["state", "error", "operation"]


class Empty(Struct, frozen=True, forbid_unknown_fields=True):
    """No body, or an empty object."""


class SinkSummary(Struct, frozen=True):
    name: str
    target: str
    lag: float | None
    """Seconds that the target is behind the source; null while that isn't known."""


class FeedSummary(Struct, frozen=True):
    """A feed in a list of feeds."""

    name: str
    state: State
    condition: Condition
    """The state, or in place of normal what it means: stalled, behind, loading, idle."""
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
    managed: bool
    """True if the server starts and stops it; false if a program does."""


class FeedList(Struct, frozen=True):
    feeds: list[FeedSummary]


class Rescanned(Struct, frozen=True):
    """Result of a look at the directory of feed files. Running feeds go on as they are."""

    started: list[str]
    """Feeds of new files, which start now."""
    changed: list[str]
    """Running feeds whose files have other options by now: resume a paused one, or PUT the options."""
    gone: list[str]
    """Feeds whose files aren't there any more; they go on until they are deleted, or the server ends."""
    misnamed: list[str]
    """Files whose names can't be those of feeds."""


class FeedDetail(Struct, frozen=True):
    feed: FeedSummary
    status: FeedStatus
    options: dict[str, Any]
    """The feed's document; each secret is "***"."""


class FeedEvent(Struct, frozen=True):
    """Data of the event `feed`."""

    feed: FeedSummary
    status: FeedStatus


class SinkList(Struct, frozen=True):
    sinks: list[SinkStatus]


class WaitList(Struct, frozen=True):
    explanation: list[str]
    """The waits as sentences."""
    waits: list[Wait]
    sentences: list[str]
    """The sentence of each wait, in the order of `waits`."""


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


class Readiness(Struct, frozen=True):
    ready: Literal[True] = True


class Resume(Struct, frozen=True, forbid_unknown_fields=True):
    skip: tuple[str, ...] = ()
    """Positions of schema changes to skip, as in the feed's error."""
    reload: tuple[str, ...] = ()
    """Full names of tables to load again, or "*" for all."""


class DeleteQuery(Struct, frozen=True, forbid_unknown_fields=True):
    data: bool = False
    """Remove the feed's data directory too."""


class EventsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    feed: str = ""
    """Name of a feed whose status is sent too, as the event `feed`."""


class HistoryEntry(Struct, frozen=True):
    time: float
    """Unix seconds."""
    kind: EntryKind
    text: str
    """The state with its detail, or the operation."""
    by: str = ""
    """Client that requested the operation: its token's name, or its address; empty for the server itself."""


class HistoryQuery(Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=MAX_HISTORY)] = 100


class HistoryList(Struct, frozen=True):
    history: list[HistoryEntry]
    """Entries, the newest first."""
