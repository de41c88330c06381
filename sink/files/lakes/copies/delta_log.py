"""The log of one Delta table: what its commits say together, and commits that are added once.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Final, TypeAlias

import msgspec
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from .....errors import Retryable, SinkError
from ...store import Store

Action: TypeAlias = dict[str, Any]
"""One line of a commit: its kind, and what it has."""

READER_FEATURES: Final = ("deletionVectors",)
WRITER_FEATURES: Final = (*READER_FEATURES, "invariants")
"""Features of the tables that are created here; a column that is NOT NULL is an invariant."""
_KNOWN: Final = frozenset({*WRITER_FEATURES, "appendOnly", "vacuumProtocolCheck"})
"""Those, and features that change nothing in what is read and written here."""
_COMMIT: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")
"""A checkpoint's version, and the number of its parts if it has several."""
_CHECKPOINT_EVERY: Final = 100
"""Number of commits between two checkpoints."""


@dataclass
class Snapshot:
    """A table as of a version."""

    version: int = -1
    """-1 of a table that isn't there."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    protocol: Mapping[str, Any] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    """Versions of applications."""
    files: dict[str, Action] = field(default_factory=dict)
    """The `add` of each file by its path."""

    @property
    def exists(self) -> bool:
        return self.version >= 0

    @property
    def configuration(self) -> dict[str, str]:
        return dict(self.metadata.get("configuration") or {})

    def apply(self, actions: Sequence[Action]) -> None:
        """Change it by one commit's actions, whose order doesn't matter."""
        for action in actions:
            if remove := action.get("remove"):
                self.files.pop(remove["path"], None)
        for action in actions:
            if add := action.get("add"):
                self.files[add["path"]] = add
            elif metadata := action.get("metaData"):
                self.metadata = metadata
            elif protocol := action.get("protocol"):
                self.protocol = protocol
            elif txn := action.get("txn"):
                self.numbers[txn["appId"]] = txn["version"]


class DeltaLog:
    """The log in a table's folder. Used by one thread at a time; raises as Store does."""

    def __init__(self, store: Store, folder: str) -> None:
        self._store: Final = store
        self._folder: Final = f"{folder}/_delta_log"
        self._table: Final = folder
        self.name: Final = f"{store.name}/{folder}"
        self._snapshot: Snapshot | None = None

    def latest(self) -> Snapshot:
        """Return the table as it is now; the result isn't changed later. Raises SinkError if its log is
        damaged, or has what isn't known here."""
        snapshot = self._snapshot or self._begun()
        version = snapshot.version
        while (content := self._store.read(self._path(version + 1))) is not None:
            if snapshot is self._snapshot:
                snapshot = _copied(snapshot)
            version = snapshot.version = version + 1
            snapshot.apply(self._parsed(content, version))
        if snapshot is not self._snapshot:
            self._check(snapshot)
            self._snapshot = snapshot
        return snapshot

    def add(self, after: Snapshot, actions: Sequence[Action]) -> bool:
        """Add the commit after a snapshot; return False if another program's commit came first.

        After Retryable it may have been added, or may be later.
        """
        content = b"".join([msgspec.json.encode(action) + b"\n" for action in actions])
        version = after.version + 1
        if not self._store.create(self._path(version), content):
            return False
        if version and version % _CHECKPOINT_EVERY == 0:
            self._write_checkpoint(version)
        return True

    def _path(self, version: int) -> str:
        return f"{self._folder}/{version:020}.json"

    def _begun(self) -> Snapshot:
        """Return the table as of its last checkpoint, or before its first commit."""
        names = self._store.names(self._folder)
        parts: dict[int, list[str]] = {}
        complete = set()
        for name in names:
            if match := _CHECKPOINT.fullmatch(name):
                version = int(match[1])
                parts.setdefault(version, []).append(name)
                if len(parts[version]) == int(match[2] or 1):
                    complete.add(version)
        snapshot = Snapshot()
        if complete:
            snapshot.version = max(complete)
            for name in parts[snapshot.version]:
                snapshot.apply(self._checkpoint(name))
        elif any(map(_COMMIT.fullmatch, names)) and f"{0:020}.json" not in names:
            raise SinkError(f"{self.name}: its log has no beginning: put back a copy of the table")
        return snapshot

    def _checkpoint(self, name: str) -> list[Action]:
        content = self._store.read(f"{self._folder}/{name}")
        if content is None:
            raise Retryable(f"{self.name}: its checkpoint {name} is gone", 1.0)
        table = pq.read_table(BytesIO(content))
        kinds = [kind for kind in ("txn", "add", "metaData", "protocol") if kind in table.column_names]
        return [
            {kind: _plain(value) for kind, value in row.items() if value is not None}
            for row in table.select(kinds).to_pylist()
        ]

    def _parsed(self, content: bytes, version: int) -> list[Action]:
        try:
            return [msgspec.json.decode(line) for line in content.splitlines() if line.strip()]
        except msgspec.DecodeError as error:
            raise SinkError(f"{self.name}: version {version} of its log is damaged: {error}") from error

    def _check(self, snapshot: Snapshot) -> None:
        features: Iterable[str] = {
            *(snapshot.protocol.get("readerFeatures") or ()),
            *(snapshot.protocol.get("writerFeatures") or ()),
        }
        if unknown := sorted(set(features) - _KNOWN):
            raise SinkError(
                f"{self.name}: another program gave the table the features {', '.join(unknown)}, which "
                "aren't known here: drop them, or remove the table's folder and load the table again"
            )

    def _write_checkpoint(self, version: int) -> None:
        store = self._store
        try:
            table = DeltaTable(
                f"{store.url}/{self._table}", version=version, storage_options=dict(store.access)
            )
            table.create_checkpoint()
        except (DeltaError, OSError) as error:
            raise Retryable(f"{self.name}: no checkpoint of its log can be written: {error}") from error


def _copied(snapshot: Snapshot) -> Snapshot:
    return Snapshot(
        snapshot.version,
        snapshot.metadata,
        snapshot.protocol,
        dict(snapshot.numbers),
        dict(snapshot.files),
    )


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    """Return what a checkpoint has as a commit would say it: maps as objects, and no nulls."""
    return {
        name: dict(inner) if name in ("partitionValues", "configuration", "tags") else inner
        for name, inner in value.items()
        if inner is not None
    } | ({"format": {"provider": "parquet", "options": {}}} if "schemaString" in value else {})
