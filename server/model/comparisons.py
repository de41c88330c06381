"""Comparisons of source and target."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

JobState: TypeAlias = Literal["waiting", "running", "done", "stopped", "failed"]


class DiffRequest(Struct, frozen=True, forbid_unknown_fields=True):
    tables: tuple[str, ...] = ()
    """Patterns of the feed's tables; empty: all."""
    sink: str = ""
    """Name of the sink to compare; required if the feed has several."""
    rate: Annotated[float, Meta(ge=0)] = 0.0
    """Maximum rows read per second; 0: unlimited."""
    syncpoint: bool = False
    """Compare both sides at one point, for a source that can be read as of a ts."""


class JobStarted(Struct, frozen=True):
    job: str


class DiffJob(Struct, frozen=True):
    """A comparison, as far as it has come."""

    job: str
    state: JobState
    request: DiffRequest
    started: float
    """Unix seconds."""
    ended: float | None
    table: str
    """Full name of the table that is being compared."""
    rows: int
    """Number of its rows compared."""
    rows_estimated: int
    tables_done: int
    tables_in_all: int
    percent: float
    seconds_left: float | None
    """Estimate; null while it isn't known."""
    is_equal: bool | None
    """True if nothing differs; null before the end."""
    differences: int
    """Number of all differences found."""
    found: list[dict[str, Any]]
    """The first of them, as `tidemill diff --json` prints them."""
    results: list[dict[str, Any]]
    """The tables' results, as `tidemill diff --json` prints them."""
    warning: str
    """Reason for which later changes may be reported."""
    error: str


class DiffJobs(Struct, frozen=True):
    jobs: list[DiffJob]
    """The newest first; without `found`."""
