"""A lake as a whole: its tables, and the files that feeds are about to add to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from sqlalchemy import make_url

from .....codec.checkpoint import decode_checkpoint
from .....config.url import redacted
from .....errors import ConfigError, SinkError
from .....events import Checkpoint
from ...address import DELTA_EXAMPLE, bucket_of, directory_of
from ...bucket import Bucket
from ...directory import Directory
from ...layout import HIDDEN
from ...ledger import State, latest_state
from ...options import DeltaBucketOptions, DeltaOptions, DirectoryOptions
from ...store import Store
from ...target import FilesTarget, files_target, lake_layout
from ..copies.iceberg_log import IcebergLog
from ..delta_layout import DeltaLayout
from ..iceberg_address import REST_EXAMPLE, SQL_EXAMPLE, CatalogAddress, iceberg_of
from ..iceberg_kind import store_of
from ..iceberg_options import IcebergBucketOptions, IcebergOptions
from ..layout import LakeLayout
from .delta import DeltaUpkeep
from .iceberg import IcebergUpkeep
from .table import TableUpkeep

EXAMPLES: Final = (DELTA_EXAMPLE, "delta+s3://bucket/prefix", SQL_EXAMPLE, REST_EXAMPLE)


class Lake:
    """The tables of one place. Raises as Store does, and SinkError if its catalog can't be used."""

    def __init__(self, url: str, store: Store, layout: LakeLayout) -> None:
        """`url` is that of the sink, for users. Raises SinkError if there is no table."""
        self.url: Final = url
        self.store: Final = store
        self._layout: Final = layout
        self._tables: dict[str, TableUpkeep] = {}
        if next(self._present(), None) is None:
            self.close()
            raise SinkError(f"{store.name} has no table of a lake")

    def folders(self) -> list[str]:
        """Return the names of the folders that have tables now."""
        return list(self._present())

    def _present(self) -> Iterator[str]:
        names = sorted(set(self.store.entries()) - self._layout.own_names)
        return (name for name in names if self.table(name).exists())

    def table(self, folder: str) -> TableUpkeep:
        """Return the table in a folder, which may not exist."""
        if folder not in self._tables:
            made: TableUpkeep
            if isinstance(self._layout, DeltaLayout):
                made = DeltaUpkeep(self.store, folder)
            else:
                log = self._layout.log(folder)
                assert isinstance(log, IcebergLog)
                made = IcebergUpkeep(self.store, folder, log)
            self._tables[folder] = made
        return self._tables[folder]

    def unannounced(self) -> dict[str, set[str]]:
        """Return the files of saved commits that their tables don't have yet, by folder.

        They are of feeds that stopped within a commit, or are in one now. Nothing refers to these files but
        the commit, which the feed finishes at its next start: they are never to be removed.
        """
        found: defaultdict[str, set[str]] = defaultdict(set)
        for state in self._states():
            staged: defaultdict[str, set[str]] = defaultdict(set)
            for name in state.staged.values():
                folder, _, path = name.partition("/")
                staged[folder].add(path)
            writer = f"tidemill/{state.feed}/{state.sink}"
            for folder, paths in staged.items():
                if folder != HIDDEN and self._number(folder, writer) < state.commits:
                    found[folder] |= paths
        return dict(found)

    def checkpoint(self) -> Checkpoint | None:
        """Return the checkpoint of the last commit, all of which is in the tables; None if that isn't known,
        as within a commit."""
        states = list(self._states())
        if len(states) != 1 or states[0].journal or self.unannounced():
            return None
        return decode_checkpoint(states[0].checkpoint, self.store.name)[0]

    def _states(self) -> Iterator[State]:
        """Yield the last commit of each writer."""
        of_spark = {name.partition("/")[0] for name in self.store.names(HIDDEN) if name.startswith("spark-")}
        for root in (HIDDEN, *(f"{HIDDEN}/{name}" for name in sorted(of_spark))):
            if (state := latest_state(self.store, root)) is not None:
                yield state

    def _number(self, folder: str, writer: str) -> int:
        """Return the number of a writer's last commit in a table; 0 if there is none."""
        return self.table(folder).log.latest().writers.get(writer, 0)

    def close(self) -> None:
        self._layout.close()


def lake_of(url: str, options: object) -> Lake:
    """Return the lake of a sink's URL and built options. Nothing is made. Raises ConfigError for other sinks,
    and as Lake."""
    place = _place(url, options)
    store = place.store
    if place.catalog is not None:
        _check_is_there(place.catalog)
    if isinstance(store, Directory) and not Path(store.url).is_dir():
        raise SinkError(f"{store.name} has no table of a lake: there is no such directory")
    store.check()
    return Lake(redacted(url), store, lake_layout(store, place.options, place.catalog, creates=False))


def store_at(url: str, options: object) -> Store:
    """Return the store of a lake's files, not connected yet, for a task in another process. Raises
    ConfigError for other sinks."""
    return _place(url, options).store


def copy_target(url: str, options: object, scratch: Path | None = None) -> FilesTarget:
    """Return the target of a sink's URL and built options with mode = "copy". `scratch` is for its index;
    None: a temporary directory. Raises ConfigError for other sinks."""
    place = _place(url, options)
    if not place.options.is_copy:
        raise ConfigError(f'{redacted(url)}: expected mode = "copy", of a lake with the present rows')
    return files_target(place.store, place.options, place.catalog, scratch)


class _Place(NamedTuple):
    store: Store
    options: DirectoryOptions
    catalog: CatalogAddress | None


def _place(url: str, options: object) -> _Place:
    match options:
        case DeltaOptions():
            path, in_directory = directory_of(url, options)
            return _Place(Directory(path), in_directory, None)
        case DeltaBucketOptions():
            address, in_bucket = bucket_of(url, options)
            return _Place(Bucket(address, in_bucket), in_bucket, None)
        case IcebergOptions() | IcebergBucketOptions():
            found = iceberg_of(url, options)
            return _Place(store_of(found), found.options, found.catalog)
    raise ConfigError(f"{redacted(url)}: no lake that can be analyzed; accepted: {', '.join(EXAMPLES)}")


def _check_is_there(catalog: CatalogAddress) -> None:
    """Raise SinkError if a catalog in SQLite has no file, which a connection would make."""
    if not catalog.is_rest:
        url = make_url(catalog.url)
        if url.get_backend_name() == "sqlite" and url.database and not Path(url.database).exists():
            raise SinkError(f"{url.database}: there is no catalog")
