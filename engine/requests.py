"""Requests of people to a feed, as a file in its data directory: tables to load again, statements to skip."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import CheckpointError
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
