"""Registry entries for kinds of sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..config import Finding
from ..events import Checkpoint, Table
from ..puller.lane import ALONE, Lane

if TYPE_CHECKING:  # the options of a source are read without its feed
    from ..actors import Clock
    from ..chain.selection.tables import TablePatterns
    from ..mounter import Policy
    from ..sharding import Routes
    from .source import Source


class SourceOptions(Protocol):
    """Options common to all kinds; each kind has a frozen dataclass with additional fields.

    Its `__post_init__` raises ConfigError for values that don't go together.
    """

    @property
    def loads(self) -> bool:
        """True if a feed without a checkpoint begins with a snapshot."""

    @property
    def address(self) -> str:
        """Address of the source, for messages."""


def _nobody(_: Table) -> None:
    pass


def _apply_all() -> Policy:
    from ..mounter import APPLY_ALL

    return APPLY_ALL


def _no_routes() -> Routes:
    from ..sharding import Routes

    return Routes()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceContext:
    """The feed of one source, and the resources for it."""

    tables: TablePatterns
    feed: str
    directory: Path
    """Directory for changes that the source spills to disk; the source creates it when needed."""
    clock: Clock
    lane: Lane = ALONE
    """The timestamps that the source may use: all, unless it is one of several."""
    on_ddl: Policy = field(default_factory=_apply_all)
    """Rules about schema changes; a kind of source with `ddl_policies` follows them."""
    details: bool = False
    """True if a sink copies indexes and the like: then a kind that can follow them does."""
    tells_details: bool = False
    """True if sinks only tell indexes and the like: then a kind that knows them roughly tells them."""
    routes: Routes = field(default_factory=_no_routes)
    """Merged tables. With routes, several sources may have tables of the same name."""
    note: Callable[[Table], object] = _nobody
    """Called by `survey` with the definition of each followed table, for the checks of the targets."""
    is_new: bool = True
    """For `survey`: False if the targets have tables already."""
    start: Checkpoint | None = None
    """For `survey`: checkpoint that the feed goes on from; None for a new feed, or if it isn't known."""
    sink_checkpoints: Sequence[Checkpoint] = ()
    """For `survey`: checkpoints of all targets that have a position."""
    state_dir: Path | None = None
    """For `survey`: directory of the feed's state; None for a feed that keeps none."""
    unneeded: frozenset[str] = frozenset()
    """For `survey`: full names of tables whose changes no target needs before they are loaded again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKind:
    """A registry entry. Code that depends on the kind of a source exists only here."""

    name: str
    schemes: tuple[str, ...]
    """Schemes of URLs, before a colon."""
    example: str
    """Example URL for errors."""
    options: type
    """Frozen dataclass derived from SourceOptions."""
    read_url: Callable[[str], dict[str, Any]]
    """Return the options in a URL, by field; a section may override them. Raises ConfigError."""
    open: Callable[[Any, SourceContext], Source]
    """Make the source, not connected yet. Raises ImportError if a package of `extra` is missing."""
    survey: Callable[[Any, SourceContext], Iterator[Finding]]
    """Yield findings: can the source be followed, and which tables match? Changes nothing; raises
    TidemillError if it can't continue."""
    side: Callable[[Any, SourceContext], Any] | None = None
    """Called by `tidemill diff`, for a kind that a package adds; returns a `compare.side.Source`. None if its
    rows can't be compared, or if `compare` knows how."""
    extra: str = ""
    """The extra of tidemill that installs its packages; empty if none is needed."""
    url_only: frozenset[str] = frozenset()
    """Fields that only the URL can set."""
    start_option: str = ""
    """Option that names a start position, as `SourceInfo.end` has it; empty if there is none."""
    first_options: tuple[str, ...] = ()
    """Options that a first feed file shows as comments, with their defaults."""
    ddl_policies: bool = False
    """True if it follows its context's rules about schema changes."""
    renews: bool = False
    """True if all tables can be loaded again into targets that have copies of them: its source has `copied`,
    and starts without a position."""
    routable: bool = False
    """True if its tables can be merged: each schema change has a commit ts of its own."""
    combines: bool = False
    """True if it can be one of several sources: it uses timestamps of its context's lane only, the keyspace
    1 + the lane's index, and waits at the load barrier."""
