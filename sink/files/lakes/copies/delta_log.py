"""The log of one Delta table: what its commits say together, and commits that are added once.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any, Final
from urllib.parse import unquote

import msgspec
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyroaring import BitMap64

from .....errors import Retryable, SinkError
from .....events import Table
from .....failpoint import reach
from ...store import Store
from ..parquet import open_parquet, read_rows
from .deletion_vectors import Descriptor, read_vector, write_vectors
from .delta_actions import WRITER_FEATURES, Action, commit_actions, rewrite_actions
from .delta_columns import DeltaColumns, refusal
from .files import CopyFiles
from .log import WRITERS, CopyCommit, CopyFile, Snapshot, defined

_KNOWN: Final = frozenset({*WRITER_FEATURES, "appendOnly", "vacuumProtocolCheck"})
"""Those, and features that change nothing in what is read and written here."""
_COMMIT: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")
"""A checkpoint's version, and the number of its parts if it has several."""
_CHECKPOINT_EVERY: Final = 100
"""Number of commits between two checkpoints."""


@dataclass
class DeltaSnapshot:
    """A Snapshot of a table in a folder."""

    folder: str
    version: int = -1
    metadata: Mapping[str, Any] = field(default_factory=dict)
    protocol: Mapping[str, Any] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    """Versions of applications."""
    files: dict[str, CopyFile] = field(default_factory=dict)
    columns: DeltaColumns = field(default_factory=DeltaColumns)
    tombstones: dict[tuple[str, str], Action] | None = None
    """Removals of files by path and deletion vector, as far as the log has them; None if nobody asks."""

    @property
    def exists(self) -> bool:
        return self.version >= 0

    @property
    def definition(self) -> Table | None:
        return defined(self.metadata.get("configuration") or {})

    @property
    def shape(self) -> object:
        return self.metadata.get("schemaString"), self.metadata.get("partitionColumns")

    @property
    def column_names(self) -> list[str]:
        schema = msgspec.json.decode(self.metadata.get("schemaString") or '{"fields": []}')
        return [field["name"] for field in schema["fields"]]

    @property
    def writers(self) -> dict[str, int]:
        return {name: number for name, number in self.numbers.items() if name.startswith(WRITERS)}

    def apply(self, actions: Sequence[Action]) -> None:
        """Change it by one commit's actions, whose order doesn't matter."""
        for action in actions:
            if remove := action.get("remove"):
                self.files.pop(remove["path"], None)
                if self.tombstones is not None:
                    vector = (remove.get("deletionVector") or {}).get("pathOrInlineDv", "")
                    self.tombstones[remove["path"], vector] = remove
        for action in actions:
            if add := action.get("add"):
                self.files[add["path"]] = _file(self.folder, add)
            elif metadata := action.get("metaData"):
                self.metadata = metadata
            elif protocol := action.get("protocol"):
                self.protocol = protocol
            elif txn := action.get("txn"):
                self.numbers[txn["appId"]] = txn["version"]


class DeltaLog:
    """A CopyLog of a Delta table."""

    def __init__(self, store: Store, folder: str, *, has_tombstones: bool = False) -> None:
        """`has_tombstones` is True to keep what the log says of removed files in memory."""
        self._store: Final = store
        self._has_tombstones: Final = has_tombstones
        self._folder: Final = folder
        self._own: Final = f"{folder}/_delta_log"
        self.name: Final = f"{store.name}/{folder}"
        self._snapshot: DeltaSnapshot | None = None

    def refusal(self, table: Table) -> str:
        return refusal(table)

    def latest(self) -> DeltaSnapshot:
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

    def number(self, snapshot: Snapshot, writer: str) -> int:
        assert isinstance(snapshot, DeltaSnapshot)
        number = snapshot.numbers.get(writer)
        if number is None:
            raise SinkError(
                f"{self.name} is a Delta table that another program made: remove it, or give another prefix"
            )
        return number

    def vector(self, file: CopyFile) -> BitMap64:
        descriptor = file.entry.get("deletionVector")
        folder = file.name.removesuffix(f"/{unquote(file.path)}")
        return BitMap64() if descriptor is None else read_vector(self._store, folder, descriptor)

    def add(self, base: Snapshot, commit: CopyCommit) -> int | None:
        assert isinstance(base, DeltaSnapshot)
        vectors = self._vectors(commit.files)
        return self._add(base.version + 1, commit_actions(base.metadata, commit, vectors))

    def rewrite(self, base: Snapshot, files: CopyFiles, made_ms: int) -> int | None:
        assert isinstance(base, DeltaSnapshot)
        return self._add(base.version + 1, rewrite_actions(files, self._vectors(files), made_ms))

    def _vectors(self, files: CopyFiles) -> dict[str, Descriptor]:
        """Write the deletion vectors that the log doesn't have."""
        descriptors = write_vectors(self._store, self._folder, list(files.changed.values()))
        return dict(zip(files.changed, descriptors, strict=True))

    def _add(self, version: int, actions: Sequence[Action]) -> int | None:
        content = b"".join([msgspec.json.encode(action) + b"\n" for action in actions])
        reach("copy.committing")
        if not self._store.create(self._path(version), content):
            return None
        if version and version % _CHECKPOINT_EVERY == 0:
            self._write_checkpoint(version)
        return version

    def _path(self, version: int) -> str:
        return f"{self._own}/{version:020}.json"

    def _begun(self) -> DeltaSnapshot:
        """Return the table as of its last checkpoint, or before its first commit."""
        names = self._store.names(self._own)
        parts: dict[int, list[str]] = {}
        complete = set()
        for name in names:
            if match := _CHECKPOINT.fullmatch(name):
                version = int(match[1])
                parts.setdefault(version, []).append(name)
                if len(parts[version]) == int(match[2] or 1):
                    complete.add(version)
        snapshot = DeltaSnapshot(self._folder, tombstones={} if self._has_tombstones else None)
        if complete:
            snapshot.version = max(complete)
            for name in parts[snapshot.version]:
                snapshot.apply(self._checkpoint(name))
        elif any(map(_COMMIT.fullmatch, names)) and f"{0:020}.json" not in names:
            raise SinkError(f"{self.name}: its log has no beginning: put back a copy of the table")
        return snapshot

    def _checkpoint(self, name: str) -> list[Action]:
        content = self._store.read(f"{self._own}/{name}")
        if content is None:
            raise Retryable(f"{self.name}: its checkpoint {name} is gone", 1.0)
        table = read_rows(open_parquet(BytesIO(content)))
        wanted = ("txn", "add", "metaData", "protocol", *(("remove",) if self._has_tombstones else ()))
        kinds = [kind for kind in wanted if kind in table.column_names]
        return [
            {kind: _plain(value) for kind, value in row.items() if value is not None}
            for row in table.select(kinds).to_pylist()
        ]

    def _parsed(self, content: bytes, version: int) -> list[Action]:
        try:
            return [msgspec.json.decode(line) for line in content.splitlines() if line.strip()]
        except msgspec.DecodeError as error:
            raise SinkError(f"{self.name}: version {version} of its log is damaged: {error}") from error

    def _check(self, snapshot: DeltaSnapshot) -> None:
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
                f"{store.url}/{self._folder}", version=version, storage_options=dict(store.access)
            )
            table.create_checkpoint()
        except (DeltaError, OSError) as error:
            raise Retryable(f"{self.name}: no checkpoint of its log can be written: {error}") from error


def _file(folder: str, add: Action) -> CopyFile:
    path = add["path"]
    stats = msgspec.json.decode(add.get("stats") or "{}")
    return CopyFile(
        path,
        f"{folder}/{unquote(path)}",
        add["size"],
        stats.get("numRecords"),
        entry=add,
        partition="/".join(str(value) for value in add["partitionValues"].values()),
        deleted=(add.get("deletionVector") or {}).get("cardinality", 0),
    )


def _copied(snapshot: DeltaSnapshot) -> DeltaSnapshot:
    return replace(
        snapshot,
        numbers=dict(snapshot.numbers),
        files=dict(snapshot.files),
        tombstones=None if snapshot.tombstones is None else dict(snapshot.tombstones),
    )


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    """Return what a checkpoint has as a commit would say it: maps as objects, and no nulls."""
    return {
        name: dict(inner) if name in ("partitionValues", "configuration", "tags") else inner
        for name, inner in value.items()
        if inner is not None
    } | ({"format": {"provider": "parquet", "options": {}}} if "schemaString" in value else {})
