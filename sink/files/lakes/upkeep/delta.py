"""Upkeep of Delta tables."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from .....errors import SinkError
from ...store import Store
from ..copies.deletion_vectors import vector_file
from ..copies.delta_actions import Action
from ..copies.delta_log import DeltaLog, DeltaSnapshot
from ..copies.log import Snapshot
from .table import Growth

_LOG: Final = "_delta_log"
_VERSION: Final = re.compile(r"(\d{20})\.(json|checkpoint\..*)")


class DeltaUpkeep:
    """A TableUpkeep of a Delta table."""

    has_checkpoints = True

    def __init__(self, store: Store, folder: str) -> None:
        self.log: Final = DeltaLog(store, folder, has_tombstones=True)
        self._store: Final = store
        self._folder: Final = folder

    def exists(self) -> bool:
        return bool(self._store.names(f"{self._folder}/{_LOG}"))

    def growth(self, snapshot: Snapshot, cutoff_ms: int) -> Growth:  # noqa: ARG002
        files = self._store.listed(f"{self._folder}/{_LOG}")
        found = [match for file in files if (match := _VERSION.fullmatch(file.name))]
        commits = [int(match[1]) for match in found if match[2] == "json"]
        checkpoint = max([int(match[1]) for match in found if match[2] != "json"], default=-1)
        replayed = sum(number > checkpoint for number in commits)
        return Growth(len(commits), 0, sum(file.size for file in files), replayed)

    def kept(self, snapshot: Snapshot, cutoff_ms: int) -> set[str]:
        assert isinstance(snapshot, DeltaSnapshot)
        assert snapshot.tombstones is not None
        removed = [
            one for one in snapshot.tombstones.values() if one.get("deletionTimestamp", 0) >= cutoff_ms
        ]
        return {path for one in [*removed, *_entries(snapshot)] for path in _paths(one)}

    def is_log(self, path: str) -> bool:
        return path.startswith("_")

    def expire(self, cutoff_ms: int) -> None:
        pass

    def shorten_log(self) -> None:
        store = self._store
        try:
            table = DeltaTable(f"{store.url}/{self._folder}", storage_options=dict(store.access))
            table.create_checkpoint()
            table.cleanup_metadata()
        except (DeltaError, OSError) as error:
            raise SinkError(f"{self.log.name}: no checkpoint of its log can be written: {error}") from error


def _entries(snapshot: DeltaSnapshot) -> list[Action]:
    return [file.entry for file in snapshot.files.values()]


def _paths(action: Action) -> list[str]:
    """Return the paths of a file and of its deletion vector's."""
    descriptor = action.get("deletionVector")
    vector = None if descriptor is None else vector_file(descriptor)
    return [unquote(action["path"]), *([] if vector is None else [vector])]
