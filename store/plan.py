"""A plan of what to compact: which windows, the most rewarding first, as JSON; and carrying it out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from ..errors import ConfigError
from .batch import Batch
from .generation import Generation
from .store import Store

VERSION: Final = 1


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """Move what is still needed out of a window, and drop it."""

    store: str
    """The name of the store's directory."""
    window: str
    dead_bytes: int
    """What that frees, ..."""
    live_bytes: int
    """... and what it writes anew, when the plan was made."""


class Plan(Struct, frozen=True, forbid_unknown_fields=True):
    """Steps in the order in which they pay. It is advice: what is needed is found out anew at each step, so
    an old plan wastes work and loses nothing."""

    version: int
    acknowledged: int
    """The ts up to which everything was taken for dead."""
    steps: list[Step]
    flush: bool = False
    """Write what is in buffers to files first, for someone who reads the files."""


class Kept(Struct, frozen=True):
    """A stretch of keys that is still needed: from `lower` to `upper`, both included."""

    lower: bytes
    upper: bytes
    bytes: int
    newest: int
    """The highest ts in it."""
    moved: Callable[[Generation], None]
    """Called with the window where it is from now on."""


class Outcome(Struct, frozen=True):
    """What a step came to."""

    store: str
    window: str
    bytes_before: int
    bytes_after: int
    """Those that were moved, or all of them where nothing was done."""
    left: str = ""
    """Why nothing was done."""


StillNeeded: TypeAlias = Callable[[Generation], Iterable[Kept]]


def encode_plan(plan: Plan) -> str:
    return msgspec.json.format(msgspec.json.encode(plan)).decode() + "\n"


def decode_plan(text: str | bytes, where: str) -> Plan:
    """Raises ConfigError, naming `where` the text was."""
    try:
        plan = msgspec.json.decode(text, type=Plan)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{where} is no compaction plan: {error}") from None
    if plan.version != VERSION:
        raise ConfigError(f"{where} is a compaction plan of version {plan.version}; accepted: {VERSION}")
    return plan


def apply_plan(plan: Plan, store: Store, still_needed: StillNeeded) -> list[Outcome]:
    """Carry out the steps that concern this store. Only its Compactor may call this. Raises StoreError.

    `still_needed` tells what of a window is; nothing else of it survives.
    """
    if plan.flush:
        store.flush()
    if plan.steps:
        store.end_window()
    ended = {window.name: window for window in store.ended()}
    return [
        _carry_out(step, store, ended.get(step.window), still_needed)
        for step in plan.steps
        if step.store == store.path.name
    ]


def _carry_out(step: Step, store: Store, window: Generation | None, still_needed: StillNeeded) -> Outcome:
    if window is None:
        return Outcome(step.store, step.window, 0, 0, "it is gone, or still written to")
    kept = list(still_needed(window))
    size, needed = window.bytes, sum(one.bytes for one in kept)
    if needed >= size:
        return Outcome(step.store, step.window, size, size, "nothing in it is dead")
    for one in kept:
        one.moved(move(one, store, window))
    store.drop(window)
    return Outcome(step.store, step.window, size, needed)


def move(kept: Kept, store: Store, window: Generation) -> Generation:
    """Write it anew, into the window that is returned. Raises StoreError."""
    batch = Batch()
    for key, value in store.iterate(window, kept.lower, kept.upper + b"\0"):
        batch.put(key, value, kept.newest)
    return store.write(batch)
