"""Requests of people to a feed, as a file in its data directory: about tables, and statements to skip."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import CheckpointError
from ..events import REST, Parking, TablePosition
from ..sharding import Unlock
from ..store import disk


class TableRequests(Struct, frozen=True):
    """Full names of tables by what is to be done; each is removed once every sink's checkpoint says so."""

    load_again: tuple[str, ...] = ()
    """Tables to be loaded again, or REST for all."""
    pause: tuple[str, ...] = ()
    """Tables of which nothing is to be applied until they are resumed."""
    resume: tuple[str, ...] = ()
    """Parked tables that are to be loaded again."""

    @property
    def names(self) -> frozenset[str]:
        return frozenset((*self.load_again, *self.pause, *self.resume))

    def without(self, names: Collection[str]) -> TableRequests:
        return TableRequests(
            *(
                tuple(name for name in some if name not in names)
                for some in (self.load_again, self.pause, self.resume)
            )
        )


class Requests(TableRequests, frozen=True):
    skip: tuple[str, ...] = ()
    """Positions of schema changes that aren't applied. They stay, as a restart may read one again."""
    unlock: tuple[Unlock, ...] = ()
    """Schema changes of merged tables to be resolved before all shards have made them. They stay, too."""

    @property
    def tables(self) -> TableRequests:
        return TableRequests(self.load_again, self.pause, self.resume)


class RequestFile:
    """The requests of one feed. A running feed looks at it about twice a second."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "requests.json"
        self._lock_path = directory / "requests.lock"

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
        tables: TableRequests | None = None,
        *,
        skip: tuple[str, ...] = (),
        unlock: tuple[Unlock, ...] = (),
    ) -> None:
        """Add requests; a later one about a table replaces an earlier one. Raises CheckpointError."""
        added = tables or TableRequests()
        try:
            disk.make_private(self.path.parent)
            with disk.locked(self._lock_path):
                before = self.load()
                left = before.tables.without(added.names)
                self._save(
                    Requests(
                        tuple(dict.fromkeys((*left.load_again, *added.load_again))),
                        tuple(dict.fromkeys((*left.pause, *added.pause))),
                        tuple(dict.fromkeys((*left.resume, *added.resume))),
                        tuple(dict.fromkeys((*before.skip, *skip))),
                        tuple(dict.fromkeys((*before.unlock, *unlock))),
                    )
                )
        except OSError as error:
            raise CheckpointError(f"can't write {self.path}: {error.strerror}") from error

    def remove(self, done: TableRequests) -> None:
        """Remove requests about tables that are carried out, unless others replaced them meanwhile. Raises
        CheckpointError."""
        if not done.names:
            return
        try:
            with disk.locked(self._lock_path):
                before = self.load()
                self._save(
                    replace(
                        before,
                        load_again=tuple(name for name in before.load_again if name not in done.load_again),
                        pause=tuple(name for name in before.pause if name not in done.pause),
                        resume=tuple(name for name in before.resume if name not in done.resume),
                    )
                )
        except OSError as error:
            raise CheckpointError(f"can't write {self.path}: {error.strerror}") from error

    def _save(self, requests: Requests) -> None:
        disk.replace(self.path, msgspec.json.encode(requests))


class PipelineRequests(Struct, frozen=True):
    """Requests to one pipeline at its start, which otherwise goes on from the sinks' checkpoints."""

    tables: TableRequests = TableRequests()
    failed: Mapping[str, Mapping[str, Parking]] = MappingProxyType({})
    """Tables to park, by the sink's name and the table's full name."""
    unlock: tuple[Unlock, ...] = ()
    seek: TablePosition | None = None
    """Position from which a stage needs the source read again, or from an earlier one."""

    @property
    def renews(self) -> bool:
        """True if all tables are to be loaded again: the pipeline has the sinks' checkpoints say so, and
        ends."""
        return REST in self.tables.load_again
