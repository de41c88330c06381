"""Schema changes while tables are loaded: which of them a target needs, and what becomes of the progress."""

from __future__ import annotations

from msgspec.structs import replace

from ..events import (
    CREATED,
    STALE,
    WHOLE,
    ChangeColumn,
    ChangeKey,
    CreateTable,
    Ddl,
    DropTable,
    RenameTables,
    SnapshotProgress,
    progress_of,
)


def creates_for_snapshot(ddl: Ddl) -> bool:
    return not ddl.query and any(isinstance(action, CreateTable) for action in ddl.actions)


def tables_of(ddl: Ddl) -> list[str]:
    """Return the full names of the tables concerned, before and after the statement."""
    names = [ddl.full_name]
    for action in ddl.actions:
        if isinstance(action, RenameTables):
            names = [f"{schema}.{table}" for pair in action.pairs for schema, table in pair]
    return names


def needed(ddl: Ddl, loading: SnapshotProgress) -> Ddl | None:
    """Return the schema change for a target at `loading`; None if the snapshot will contain its effect.

    A table that is created for its snapshot replaces the stale copy that the target may have.
    """
    name = ddl.full_name
    have = progress_of(loading, name)
    is_stale = loading.get(name) == STALE
    if any(isinstance(action, RenameTables) for action in ddl.actions):
        return _needed_rename(ddl, loading)
    if creates_for_snapshot(ddl):
        if have is not None:
            return None
        return replace(ddl, actions=tuple(map(_replacing, ddl.actions))) if is_stale else ddl
    if have is None:
        return ddl if is_stale and DropTable() in ddl.actions else None
    if have.last is not None and any(isinstance(one, (ChangeColumn, ChangeKey)) for one in ddl.actions):
        return replace(ddl, reload=f"table {name}: its columns were changed while it was loaded")
    return ddl


def _replacing(action: object) -> object:
    return replace(action, replaces=True) if isinstance(action, CreateTable) else action


def _needed_rename(ddl: Ddl, loading: SnapshotProgress) -> Ddl | None:
    """Return the renaming if all its tables are loaded; else they are loaded again by their new names."""
    names = tables_of(ddl)
    old = names[::2]
    if all(progress_of(loading, name) == WHOLE for name in old):
        return ddl
    if not any(progress_of(loading, name) or loading.get(name) == STALE for name in old):
        return None
    return replace(ddl, reload=f"tables {', '.join(names)}: they were renamed while they were loaded")


def progress_after(loading: SnapshotProgress, ddl: Ddl) -> SnapshotProgress:
    """Return the snapshot progress once the target has the schema change."""
    name = ddl.full_name
    if creates_for_snapshot(ddl):
        return loading if progress_of(loading, name) is not None else {**loading, name: CREATED}
    if DropTable() in ddl.actions:
        return {other: have for other, have in loading.items() if other != name}
    for action in ddl.actions:
        if isinstance(action, RenameTables):
            names = tables_of(ddl)
            renamed = dict(zip(names[::2], names[1::2], strict=True))
            return {renamed.get(other, other): have for other, have in loading.items()}
    return loading
