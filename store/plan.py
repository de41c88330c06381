"""A compaction plan as JSON (generations to compact, the most rewarding first), and its execution."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from ..errors import ConfigError
from .batch import PairBatch
from .generation import Generation
from .store import Store

VERSION: Final = 1


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """Move the live entries out of a generation, and drop it."""

    store: str
    """The name of the store's directory."""
    window: str
    dead_bytes: int
    """Bytes that the step frees, as of when the plan was made."""
    live_bytes: int
    """Bytes that the step rewrites, as of when the plan was made."""


class CompactionPlan(Struct, frozen=True, forbid_unknown_fields=True):
    """Steps, the most rewarding first. A plan is advice: each step determines again what is live, so an old
    plan wastes work and loses nothing."""

    version: int
    acknowledged: int
    """The acknowledged ts that the plan assumed: everything up to it was counted as dead."""
    steps: list[Step]
    flush: bool = False
    """Flush the buffers to files first, for readers of the files."""


class Kept(Struct, frozen=True):
    """A live range of keys, from `lower` to `upper`, both included."""

    lower: bytes
    upper: bytes
    bytes: int
    newest: int
    """The highest ts in the range."""
    moved: Callable[[Generation], None]
    """Called with the generation that holds the range from now on."""


class StepOutcome(Struct, frozen=True):
    """The result of a step."""

    store: str
    window: str
    bytes_before: int
    bytes_after: int
    """Bytes that were moved; all bytes if nothing was done."""
    left: str = ""
    """The reason if nothing was done."""


StillNeeded: TypeAlias = Callable[[Generation], Iterable[Kept]]


def encode_plan(plan: CompactionPlan) -> str:
    return msgspec.json.format(msgspec.json.encode(plan)).decode() + "\n"


def decode_plan(text: str | bytes, where: str) -> CompactionPlan:
    """Decode a plan. Raises ConfigError that names `where` the text was."""
    try:
        plan = msgspec.json.decode(text, type=CompactionPlan)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{where} is no compaction plan: {error}") from None
    if plan.version != VERSION:
        raise ConfigError(f"{where} is a compaction plan of version {plan.version}; accepted: {VERSION}")
    return plan


def apply_plan(plan: CompactionPlan, store: Store, still_needed: StillNeeded) -> list[StepOutcome]:
    """Carry out the steps that concern this store. Only its Compactor may call this. Raises StoreError.

    `still_needed` returns the live ranges of a generation; everything else in it is dropped.
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


def _carry_out(step: Step, store: Store, window: Generation | None, still_needed: StillNeeded) -> StepOutcome:
    if window is None:
        return StepOutcome(step.store, step.window, 0, 0, "it is gone, or still written to")
    kept = list(still_needed(window))
    size, needed = window.bytes, sum(one.bytes for one in kept)
    if needed >= size:
        return StepOutcome(step.store, step.window, size, size, "nothing in it is dead")
    for one in kept:
        one.moved(move(one, store, window))
    store.drop(window)
    return StepOutcome(step.store, step.window, size, needed)


def move(kept: Kept, store: Store, window: Generation) -> Generation:
    """Copy a live range into the current generation and return that. Raises StoreError."""
    batch = PairBatch()
    for key, value in store.iterate(window, kept.lower, kept.upper + b"\0"):
        batch.put(key, value, kept.newest)
    return store.write(batch)
