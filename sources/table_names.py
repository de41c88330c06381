"""Names of tables of several sources: plain in each source, and origin names in the feed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from ..errors import CheckpointError
from ..events import REST, Checkpoint, Ddl, Item, SnapshotProgress, origin_name, source_and_table
from ..sharding import known_shards


class TableNames:
    """Translates between names in a source and in the feed; without sources, both are the same."""

    def __init__(self, sources: Sequence[str] = ()) -> None:
        """`sources` has the names of the sources, if their tables may have equal names."""
        self.sources: Final = tuple(sources)

    def item(self, item: Item, source: str) -> Item:
        """Return a source's item with origin names; its rows have them already."""
        if not self.sources:
            return item
        if isinstance(item, Ddl):
            return replace(item, source_name=source)
        if item.chunk is None or not item.chunk.table:
            return item
        return replace(item, chunk=replace(item.chunk, table=origin_name(source, item.chunk.table)))

    def loading(self, loading: SnapshotProgress | None, source: str) -> SnapshotProgress | None:
        """Return what of the snapshot's progress concerns a source, by the names in it."""
        if loading is None or not self.sources:
            return loading
        named = [(*source_and_table(name, self.sources), progress) for name, progress in loading.items()]
        return {name: progress for one, name, progress in named if one == source or name == REST}

    def adopted(self, at: Checkpoint, tables: Mapping[str, Sequence[tuple[str, str]]]) -> Checkpoint:
        """Return a checkpoint of an earlier version, which has names in sources, with origin names.

        `tables` has each source's present tables. Raises CheckpointError if the source of one isn't known.
        """
        if not self.sources:
            return at
        owners: dict[str, set[str]] = {}
        for source, names in tables.items():
            for schema, table in names:
                owners.setdefault(f"{schema}.{table}", set()).add(source)
        owners |= {shard.full_name: {shard.source} for shard in known_shards(at.stages)}

        def adopted(name: str) -> str:
            if name == REST or source_and_table(name, self.sources)[0]:
                return name
            found = owners.get(name, set()).copy()
            if len(found) != 1:
                raise CheckpointError(
                    f"table {name} of the checkpoint is in {len(found)} of the sources "
                    f"{', '.join(self.sources)}, so its rows can't be told apart: begin with an empty target"
                )
            return origin_name(found.pop(), name)

        loading = at.loading
        return replace(
            at,
            loading=loading and {adopted(name): progress for name, progress in loading.items()},
            tables={adopted(name): position for name, position in at.tables.items()},
        )
