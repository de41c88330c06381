"""The actions of one commit in a Delta log.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import uuid4

import msgspec

from .deletion_vectors import Descriptor
from .delta_columns import schema_string
from .log import TABLE, CopyCommit, CopyFile, defined

if TYPE_CHECKING:
    from .files import CopyFiles

Action: TypeAlias = dict[str, Any]
"""One line of a commit: its kind, and what it has."""

READER_FEATURES: Final = ("deletionVectors",)
WRITER_FEATURES: Final = (*READER_FEATURES, "invariants")
"""Features of the tables that are created here; a column that is NOT NULL is an invariant."""
_KEPT: Final = ("path", "partitionValues", "size", "deletionVector", "tags")
"""Fields of a file's `add` that its `remove` repeats."""


def commit_actions(
    metadata: Mapping[str, Any], commit: CopyCommit, vectors: Mapping[str, Descriptor]
) -> list[Action]:
    """Return the actions of a commit after metadata, which are empty before the first one.

    `vectors` has the deletion vector of each file that gets another one, by path.
    """
    made_ms, files = commit.made_ms, commit.files
    info = {"timestamp": made_ms, "operation": "WRITE", "engineInfo": "tidemill"}
    actions: list[Action] = [
        {"commitInfo": info},
        {"txn": {"appId": commit.writer, "version": commit.number}},
    ]
    if not metadata:
        features = {"readerFeatures": READER_FEATURES, "writerFeatures": WRITER_FEATURES}
        actions.append({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}})
    if not metadata or commit.table != defined(metadata.get("configuration") or {}):
        actions.append({"metaData": _metadata(metadata, commit)})
    return [*actions, *_file_actions(files, vectors, made_ms, is_change=True)]


def rewrite_actions(files: CopyFiles, vectors: Mapping[str, Descriptor], made_ms: int) -> list[Action]:
    """Return the actions of a commit that changes files and no row."""
    info = {"timestamp": made_ms, "operation": "OPTIMIZE", "engineInfo": "tidemill"}
    return [{"commitInfo": info}, *_file_actions(files, vectors, made_ms, is_change=False)]


def _file_actions(
    files: CopyFiles, vectors: Mapping[str, Descriptor], made_ms: int, *, is_change: bool
) -> list[Action]:
    changed = [path for path in vectors if path in files.base]
    removed = [*files.removed, *[files.base[path] for path in changed]]
    added = [*files.added, *[files[path] for path in changed]]
    actions = [
        *[{"remove": _removal(file.entry, made_ms)} for file in removed],
        *[{"add": _addition(file, vectors, made_ms)} for file in added],
    ]
    for action in actions:
        for own in action.values():
            own["dataChange"] = is_change
    return actions


def _metadata(before: Mapping[str, Any], commit: CopyCommit) -> dict[str, Any]:
    configuration = dict(before.get("configuration") or {})
    configuration.pop(TABLE, None)
    if commit.table is None:
        return {**before, "configuration": configuration}
    text = msgspec.json.encode(commit.table).decode()
    return {
        "id": str(uuid4()),
        "createdTime": commit.made_ms,
        "format": {"provider": "parquet", "options": {}},
        "partitionColumns": [],
        **before,
        "schemaString": schema_string(commit.table),
        "configuration": {"delta.enableDeletionVectors": "true", **configuration, TABLE: text},
    }


def _addition(file: CopyFile, vectors: Mapping[str, Descriptor], made_ms: int) -> Action:
    entry = dict(file.entry or {})
    entry.pop("deletionVector", None)
    if file.like is not None:
        entry["partitionValues"] = file.like["partitionValues"]
    stats = msgspec.json.decode(entry.get("stats") or "{}")
    if file.rows is not None:
        stats["numRecords"] = file.rows
    if vector := vectors.get(file.path):
        entry["deletionVector"] = vector
        stats["tightBounds"] = False
    return {
        "partitionValues": {},
        "modificationTime": made_ms,
        **entry,
        "path": file.path,
        "size": file.size,
        "stats": msgspec.json.encode(stats).decode(),
    }


def _removal(add: Action, made_ms: int) -> Action:
    own = {name: add[name] for name in _KEPT if add.get(name) is not None}
    return {**own, "deletionTimestamp": made_ms, "extendedFileMetadata": True}
