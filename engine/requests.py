"""Requests of people to a feed, as a file in its data directory: tables to load again, statements to skip."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import CheckpointError
from ..events import REST, STALE, Checkpoint, TablePosition
from ..sharding import Unlock
from ..store import disk


class Requests(Struct, frozen=True):
    load_again: tuple[str, ...] = ()
    """Full names of tables to be loaded again, or REST for all; removed once every sink's checkpoint says
    so."""
    skip: tuple[str, ...] = ()
    """Positions of schema changes that aren't applied. They stay, as a restart may read one again."""
    unlock: tuple[Unlock, ...] = ()
    """Schema changes of merged tables to be resolved before all shards have made them. They stay, too."""


class RequestFile:
    """The requests of one feed. A running feed looks at it about twice a second."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "requests.json"

    def load(self) -> Requests:
        """Return the requests. Raises CheckpointError if the file is damaged or can't be read."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=Requests)
        except FileNotFoundError:
            return Requests()
        except OSError as error:
            raise CheckpointError(f"can't read {self.path}: {error.strerror}") from error
        except msgspec.DecodeError as error:
            raise CheckpointError(f"{self.path} is damaged ({error}): remove it, and request again") from None

    def add(
        self,
        *,
        load_again: tuple[str, ...] = (),
        skip: tuple[str, ...] = (),
        unlock: tuple[Unlock, ...] = (),
    ) -> None:
        before = self.load()
        self._save(
            Requests(
                tuple(dict.fromkeys((*before.load_again, *load_again))),
                tuple(dict.fromkeys((*before.skip, *skip))),
                tuple(dict.fromkeys((*before.unlock, *unlock))),
            )
        )

    def remove(self, tables: frozenset[str]) -> None:
        """Remove tables that are to be loaded again."""
        before = self.load()
        left = tuple(name for name in before.load_again if name not in tables)
        if left != before.load_again:
            self._save(replace(before, load_again=left))

    def _save(self, requests: Requests) -> None:
        try:
            disk.make_private(self.path.parent)
            disk.replace(self.path, msgspec.json.encode(requests))
        except OSError as error:
            raise CheckpointError(f"can't write {self.path}: {error.strerror}") from error


class PipelineRequests(Struct, frozen=True):
    """Requests to one pipeline at its start, which otherwise goes on from the sinks' checkpoints."""

    load_again: Mapping[str, Collection[str]] = MappingProxyType({})
    """Full names of tables to load again, by the sink's name."""
    renews: bool = False
    """True if all tables are to be loaded again: the pipeline has the sinks' checkpoints say so, and ends."""
    unlock: tuple[Unlock, ...] = ()
    seek: TablePosition | None = None
    """Position from which a stage needs the source read again, or from an earlier one."""


class RequestedLoads:
    """The requests in a feed's file, and how far its loads are: tables are requested until every sink has
    begun to load them. Called only from the feed's thread."""

    def __init__(self, requests: RequestFile, sinks: Mapping[str, Callable[[str], bool]]) -> None:
        """`sinks` return, by their names, True for the full names of the tables that they are given."""
        self._requests = requests
        self._sinks = sinks
        self._begun: set[tuple[str, str]] = set()
        """Sinks and tables whose requested load has begun, while it hasn't for all sinks."""

    def next(self, seek: TablePosition | None) -> PipelineRequests:
        """Return the requests for the next pipeline. Raises CheckpointError."""
        stored = self._requests.load()
        loads = self._left(stored.load_again)
        return PipelineRequests(loads, REST in stored.load_again, stored.unlock, seek)

    def renewed(self) -> None:
        """Note that every sink's checkpoint has all tables to be loaded again."""
        self._requests.remove(frozenset(self._requests.load().load_again))
        self._begun.clear()

    def note(self, checkpoints: Mapping[str, Checkpoint | None]) -> None:
        """Note which requested loads have begun; several sinks may have begun at the same time.

        `checkpoints` are those of the sinks, by name.
        """
        requested = self._requests.load().load_again
        for sink, checkpoint in checkpoints.items():
            loading = (checkpoint.loading if checkpoint is not None else None) or {}
            self._begun.update((sink, name) for name in requested if loading.get(name) == STALE)
        left = {table for tables in self._left(requested).values() for table in tables}
        done = frozenset(requested) - left - {REST}
        self._requests.remove(done)
        self._begun = {(sink, table) for sink, table in self._begun if table not in done}

    def _left(self, requested: Iterable[str]) -> dict[str, list[str]]:
        return {
            sink: [
                table
                for table in requested
                if table != REST and wants(table) and (sink, table) not in self._begun
            ]
            for sink, wants in self._sinks.items()
        }
