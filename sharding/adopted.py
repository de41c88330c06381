"""Merged tables whose rows something else has merged until now."""

from __future__ import annotations

from collections.abc import Sequence

from .key_space import KeySpace, check_shards
from .merged_tables import MergedTables
from .route import Routes


def adopted_tables(routes: Routes, spaces: Sequence[KeySpace]) -> MergedTables:
    """Return the merged tables with the shards that there are now. Raises SinkError if shards differ."""
    check_shards(routes, spaces, keys=False)
    merged_tables = MergedTables("", {})
    for space in spaces:
        route = routes.find(space.source, space.table.schema, space.table.name)
        if route is not None:
            routed = route.table(space.table)
            merged = merged_tables.get(route.target) or merged_tables.add(route.target, routed)
            merged.join(route.shard, routed)
    return merged_tables
