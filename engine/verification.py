"""The verification of a feed's targets: its options, its status, and what a feed asks of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, Protocol, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..chain.selection.table_option import TABLES
from ..chain.selection.tables import TablePatterns
from ..config import Given, seconds_of

MOST_TABLES: Final = 100
"""Maximum number of tables whose divergences a status lists; further ones are counted."""


def _period(written: object, _: str) -> float:
    return seconds_of(written)


@dataclass(frozen=True, kw_only=True)
class VerifyOptions:
    """Continuous comparison of the source with the targets, by the feed itself."""

    every: Annotated[float, Given(kind=float | str, parse=_period)] = 86_400.0
    """Period in which the whole of each table is compared once: seconds, or text such as "12h" or "7d"."""
    share: Annotated[float, Meta(gt=0, le=1)] = 0.05
    """Maximum share of the time in which rows are read and compared, of all sinks together. It goes before
    `every`."""
    max_rows_per_second: Annotated[float, Meta(ge=0)] = 0
    """Maximum number of rows of the source that are read per second for each sink; 0: no limit. It goes
    before `every`."""
    tables: Annotated[TablePatterns | None, TABLES] = None
    """Patterns of the feed's tables that are compared, as in `source.tables`; without it, all."""
    sinks: tuple[str, ...] = ()
    """Names of the sinks whose targets are compared; without it, all."""
    repair: bool = False
    """Write rows that differ into the target again, as `tidemill diff --apply` does."""


VerifyState: TypeAlias = Literal["comparing", "waiting", "paused"]


class Divergence(Struct, frozen=True):
    """A table of a target that isn't a copy of the source's, though the feed has passed the position as of
    which the source was read."""

    table: str
    """Full name in the source."""
    missing: int = 0
    """Number of rows that are missing in the target."""
    extra: int = 0
    """Number of rows that only the target has."""
    changed: int = 0
    """Number of rows with other values in the target."""
    first: str = ""
    """Lowest and highest key of these rows, such as "id=17"; empty for a table without a key."""
    last: str = ""
    rows: tuple[str, ...] = ()
    """The first of these rows, as `tidemill diff` prints them."""
    detail: str = ""
    """Difference of the tables themselves; empty if there is none."""
    found: float = 0.0
    """Time at which the first difference was found, in Unix seconds."""

    @property
    def differences(self) -> int:
        return self.missing + self.extra + self.changed


class VerifyStatus(Struct, frozen=True):
    """The verification of one sink's target."""

    sink: str
    state: VerifyState = "waiting"
    """waiting: for the feed's snapshot, or for the next pass; paused: after an error, which `detail` has."""
    detail: str = ""
    since: float | None = None
    """Time at which the present pass over all tables began, or the last one while waiting for the next, in
    Unix seconds; None before the first."""
    percent: float = 0.0
    """Share of the rows that were compared since then, by the source's statistics; without them, of the
    tables."""
    table: str = ""
    """Full name of the table that is being compared."""
    rows: int = 0
    """Number of rows compared in this pass, ..."""
    rows_compared: int = 0
    """... and in all passes."""
    moving: int = 0
    """Number of rows of this pass that changed at every look, and so weren't compared."""
    passes: int = 0
    """Number of whole passes."""
    whole_began: float | None = None
    """Beginning and end of the last whole pass, in Unix seconds; None before the first."""
    whole_ended: float | None = None
    repaired: int = 0
    """Number of rows that were repaired, in all passes."""
    divergences: tuple[Divergence, ...] = ()
    """Tables that differed when they were compared last, at most 100."""
    differences: int = 0
    """Number of rows that differed when they were compared last, ..."""
    diverged: int = 0
    """... and of tables that have such rows, or that differ themselves."""


def resting(statuses: Sequence[VerifyStatus]) -> list[VerifyStatus]:
    """Return the statuses of a feed that doesn't run."""
    return [replace(one, state="waiting", detail="the feed doesn't run", table="") for one in statuses]


class Verification(Protocol):
    """Compares source and targets while the feed runs, in threads of its own. Raises nothing."""

    def start(self) -> None:
        """Begin. Called once, after the feed has locked its data directory."""

    def stop(self) -> None:
        """Request the end, and return at once. Safe to repeat, and before `start`."""

    def wait(self) -> None:
        """Wait until nothing is read any more."""

    def statuses(self) -> Sequence[VerifyStatus]:
        """Return the status of each sink that is compared. Any thread."""


class NoVerification:
    """The verification of a feed whose options ask for none."""

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def wait(self) -> None:
        pass

    def statuses(self) -> Sequence[VerifyStatus]:
        return ()
