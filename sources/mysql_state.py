"""State of a feed of a MariaDB or MySQL server: names of its files, and choices made by what they say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from ..codec.mysql.left_out import leave_out_generated, with_generated
from ..codec.mysql.tokens import NotUnderstood
from ..errors import SourceError
from ..events import Checkpoint, noted_key
from ..mounter.mysql.catalog import Catalog
from ..mounter.mysql.history import History, Later
from ..puller.lane import ALONE, Lane
from ..puller.mysql.options import MysqlOptions


def name_of(lane: Lane) -> str:
    """Return the source's name if it has one, also if it is the only one."""
    return "" if lane is ALONE else lane.source.removeprefix("source ")


def file_name(feed: str, source: str, kind: str) -> str:
    return ".".join(filter(None, (feed, source, kind)))


def history_of(
    directory: Path, feed: str, lane: Lane, source: str, start: Checkpoint | None, sinks: Iterable[Checkpoint]
) -> History:
    """Return the history of a source's catalog, for a start at `start` with sinks at these checkpoints.

    `source` is the source's identity.
    """
    ts = 0 if start is None else start.ts
    noted = [int(one.stages.get(noted_key(source), 0)) for one in sinks]
    passed = max([one for one in noted if one <= ts], default=0)
    return History(directory / file_name(feed, name_of(lane), "catalog"), source, passed)


def known_tables(catalog: Catalog | None) -> Callable[[str, str], bool] | None:
    """Return the choice of tables that the catalog knows at the start; None if there is no catalog."""
    if catalog is None:
        return None
    if catalog.state != "unknown":
        return lambda _schema, _table: True
    known = {(table.schema, table.name) for table in catalog.tables()}
    return lambda schema, table: (schema, table) in known


def forget_unneeded(catalog: Catalog, unneeded: Collection[str]) -> None:
    """Forget the definitions of tables that are loaded again before a target needs a change of theirs: other
    patterns may not have matched them meanwhile, so they may be outdated, or missing."""
    if catalog.state != "loading":  # then a table that isn't known is one that isn't loaded yet
        for name in sorted(unneeded):
            schema, _, table = name.partition(".")
            catalog.forget((schema, table))


def choose_columns(
    options: MysqlOptions, catalog: Catalog, later: Iterable[Later], reloading: Collection[str]
) -> None:
    """Give tables that are loaded again the columns that `generated_columns` says. Raises SourceError for
    another table that was loaded under another value of it."""
    option, copies_generated = options.generated_columns, options.copies_generated
    mixed = set()
    for known in (*catalog.known(), *(one.known for one in later)):
        try:
            made = with_generated(known) if copies_generated else leave_out_generated(known)
        except NotUnderstood as what:
            raise SourceError(f"{known.table.full_name} is {what}: leave it out") from None
        if made != known and known.table.full_name not in reloading:
            mixed.add(known.table.full_name)
        elif made != known and known == catalog.get((known.table.schema, known.table.name)):
            catalog.put(made)
    if mixed:
        were = "left out" if copies_generated else "copied"
        again = " ".join(f"--resnapshot {name}" for name in sorted(mixed))
        raise SourceError(
            f"{options.address}: source.generated_columns is {option!r}, but the generated columns of "
            f"{', '.join(sorted(mixed))} were {were} so far: change it back, or load the tables again "
            f"(tidemill resume FEED {again})"
        )
