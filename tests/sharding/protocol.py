"""The ten states of a coordinated schema change, as a kill finds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

STATES: Final = (
    "a shard is the first to make a change",
    "another shard makes it, and others haven't",
    "rows that wait exceed the quota and are forgotten",
    "a checkpoint with waiting shards is about to be stored",
    "a checkpoint with waiting shards is stored",
    "all shards have made the change",
    "the change is executed, and its checkpoint about to be stored",
    "the change's checkpoint is stored",
    "rows that waited are let go",
    "the source is asked to read rows again",
)
OUTSIDE: Final = "no shard waits"


def state_of(point: str, *, waiting: int, is_altered: bool) -> str:
    """Return the state at a named point: `waiting` shards wait, and with `is_altered` a change was executed
    that no stored checkpoint has."""
    first, further, forgotten, unstored, stored, synced, executed, kept, released, sought = STATES
    match point:
        case "shard.held":
            return first if waiting == 1 else further
        case "shard.forgotten":
            return forgotten
        case "shard.synced":
            return synced
        case "shard.released":
            return released
        case "shard.sought":
            return sought
    if is_altered:
        return kept if point == "sink.committed" else executed
    if waiting:
        return stored if point == "sink.committed" else unstored
    return OUTSIDE


def table_of(killed: Mapping[str, int]) -> list[str]:
    """Return the number of kills in each state as lines."""
    return [f"{killed.get(state, 0):6} {state}" for state in (*STATES, OUTSIDE)]
