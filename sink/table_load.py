"""Schema changes while tables are loaded: which of them a target needs, and what becomes of the progress."""

from __future__ import annotations

from msgspec.structs import replace

from ..events import (
    PENDING,
    REST,
    STALE,
    WHOLE,
    ChangeColumn,
    ChangeKey,
    Chunk,
    CreateTable,
    Ddl,
    DropTable,
    RenameTables,
    SnapshotProgress,
    TableProgress,
    load_again,
    origin_name,
    progress_of,
)


def creates_for_snapshot(ddl: Ddl) -> bool:
    return not ddl.query and any(isinstance(action, CreateTable) for action in ddl.actions)


def tables_of(ddl: Ddl) -> list[str]:
    """Return the origin names of the tables concerned, before and after the statement."""
    names = [ddl.origin_name]
    for action in ddl.actions:
        if isinstance(action, RenameTables):
            pairs = [f"{schema}.{table}" for pair in action.pairs for schema, table in pair]
            names = [origin_name(ddl.source_name, name) for name in pairs]
    return names


def needed(ddl: Ddl, loading: SnapshotProgress) -> Ddl | None:
    """Return the schema change for a target at `loading`; None if the snapshot will contain its effect.

    A table that is created for its snapshot replaces the stale copy that the target may have.
    """
    name = ddl.origin_name
    have = progress_of(loading, name)
    is_stale = loading.get(name) == STALE
    if any(isinstance(action, RenameTables) for action in ddl.actions):
        return _needed_rename(ddl, loading)
    if creates_for_snapshot(ddl):
        if have is not None:
            return None
        return replace(ddl, actions=tuple(map(_replacing, ddl.actions))) if is_stale else ddl
    if have is None:
        return ddl if name in loading and DropTable() in ddl.actions else None
    if have.last is not None and any(isinstance(one, (ChangeColumn, ChangeKey)) for one in ddl.actions):
        return replace(ddl, reload=f"table {name}: its columns were changed while it was loaded")
    return ddl


def _replacing(action: object) -> object:
    return replace(action, replaces=True) if isinstance(action, CreateTable) else action


def _needed_rename(ddl: Ddl, loading: SnapshotProgress) -> Ddl | None:
    """Return the renaming if all its tables are loaded; else they are loaded again by their new names.

    They are also loaded again if the target has a stale copy of one by its new name.
    """
    names = tables_of(ddl)
    old, new = names[::2], names[1::2]
    is_taken = any(name in loading and name not in old for name in new)
    if not is_taken and all(progress_of(loading, name) == WHOLE for name in old):
        return ddl
    if not any(progress_of(loading, name) or name in loading for name in old):
        return None
    return replace(ddl, reload=f"tables {', '.join(names)}: they were renamed while they were loaded")


def progress_after_chunk(
    loading: SnapshotProgress, chunk: Chunk, *, owned: bool = False
) -> SnapshotProgress | None:
    """Return the snapshot progress once the target has the chunk; None if everything is loaded then.

    With `owned`, `loading` itself is changed.

    Tables that aren't complete at the end of the snapshot came by a schema change while others were loaded.
    """
    if not chunk.table:
        left = [name for name, have in loading.items() if have != WHOLE] if REST in loading else []
        return load_again(None, left) if left else None
    if chunk.loaded == PENDING and chunk.table in loading:
        return loading
    if covers(progress_of(loading, chunk.table), chunk.loaded):
        return loading
    changed = loading if owned else loading.copy()
    changed[chunk.table] = chunk.loaded
    return changed


def covers(have: TableProgress | None, wanted: TableProgress) -> bool:
    """Return True if a table loaded up to `have` includes everything up to `wanted`."""
    if have is None:
        return False
    return have.last is None or (wanted.last is not None and wanted.last <= have.last)


def progress_after(loading: SnapshotProgress, ddl: Ddl) -> SnapshotProgress:
    """Return the snapshot progress once the target has the schema change, one of a statement."""
    if DropTable() in ddl.actions:
        return {other: have for other, have in loading.items() if other != ddl.origin_name}
    for action in ddl.actions:
        if isinstance(action, RenameTables):
            names = tables_of(ddl)
            renamed = dict(zip(names[::2], names[1::2], strict=True))
            return {renamed.get(other, other): have for other, have in loading.items()}
    return loading
