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
    return not ddl.query and creates(ddl)


def creates_by_statement(ddl: Ddl) -> bool:
    return bool(ddl.query) and creates(ddl)


def creates(ddl: Ddl) -> bool:
    return any(isinstance(action, CreateTable) for action in ddl.actions)


def tables_of(ddl: Ddl) -> list[str]:
    """Return the origin names of the tables concerned, before and after the statement."""
    names = [ddl.origin_name]
    for action in ddl.actions:
        if isinstance(action, RenameTables):
            pairs = [f"{schema}.{table}" for pair in action.pairs for schema, table in pair]
            names = [origin_name(ddl.source_name, name) for name in pairs]
    return names


def needed(ddl: Ddl, loading: SnapshotProgress) -> Ddl | None:
    """Return the schema change for a target at `loading`; None if the snapshot will contain its effect, or
    the table is parked.

    A table that is created for its snapshot replaces the stale copy that the target may have.
    """
    name = ddl.origin_name
    have = progress_of(loading, name)
    listed = loading.get(name, WHOLE)
    if any(isinstance(action, RenameTables) for action in ddl.actions):
        return _needed_rename(ddl, loading)
    if creates_for_snapshot(ddl):
        if have is not None or listed.parked is not None:
            return None
        return replace(ddl, actions=tuple(map(_replacing, ddl.actions))) if listed.stale else ddl
    if have is None:
        is_here = name in loading and listed.parked is None
        return ddl if is_here and DropTable() in ddl.actions else None
    if have.last is not None and any(isinstance(one, (ChangeColumn, ChangeKey)) for one in ddl.actions):
        return replace(ddl, reload=f"table {name}: its columns were changed while it was loaded")
    return ddl


def _replacing(action: object) -> object:
    return replace(action, replaces=True) if isinstance(action, CreateTable) else action


def _needed_rename(ddl: Ddl, loading: SnapshotProgress) -> Ddl | None:
    """Return the renaming if all its tables are loaded; else they are loaded again by their new names, or
    parked as they were.

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
        parked = {name: have for name, have in loading.items() if have.parked is not None}
        left = [name for name, have in loading.items() if have != WHOLE] if REST in loading else []
        return {**load_again(None, left), **parked} if left or parked else None
    listed = loading.get(chunk.table)
    if listed is not None and (listed.parked is not None or chunk.loaded == PENDING):
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
        return {
            other: have
            for other, have in loading.items()
            if other != ddl.origin_name or have.parked is not None
        }
    if renamed := renamed_tables(ddl):
        return {renamed.get(other, other): have for other, have in loading.items()}
    return loading


def renamed_tables(ddl: Ddl) -> dict[str, str]:
    """Return the new origin names of renamed tables by their old ones."""
    if not any(isinstance(action, RenameTables) for action in ddl.actions):
        return {}
    names = tables_of(ddl)
    return dict(zip(names[::2], names[1::2], strict=True))


def new_tables(ddl: Ddl, loading: SnapshotProgress) -> list[str]:
    """Return the tables that a schema change makes, or renames though `loading` doesn't list them."""
    if creates_by_statement(ddl):
        return [ddl.origin_name]
    return [new for old, new in renamed_tables(ddl).items() if old not in loading]


def reloaded(loading: SnapshotProgress | None, ddl: Ddl) -> SnapshotProgress:
    """Return the snapshot progress after a schema change whose tables are to be loaded again; a table that
    was parked is parked by its new name.

    `loading` is the progress that `progress_after` returned. A renaming isn't made in the target, so it may
    have a copy by each of the names.
    """
    before = {REST: WHOLE} if loading is None else loading
    new = [name for name in renamed_tables(ddl).values() if name in before]
    parked = {name: replace(before[name], pending=False) for name in new if before[name].parked is not None}
    return {**before, **dict.fromkeys(tables_of(ddl), STALE), **parked}
