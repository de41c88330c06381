"""A plan carried out, step by step, while feeds go on writing.

A feed's commit and a step's name the version that they were made for. Whichever comes second is made for the
new version, so both are there. What a feed notes in a table (the number of its last commit) stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, assert_never

from msgspec import Struct

from .....actors import Clock
from .....errors import TidemillError
from .....failpoint import reach
from ...store import in_parallel
from ..copies.log import CopyFile
from .join import Executor
from .lake import Lake
from .plan import LEAST_DELETED, LakePlan, LakeStep
from .rewrite import Rewriting
from .survey import cutoff_of, is_small, unused
from .table import TableUpkeep

_THREADS: Final = 8
"""Number of files that are removed at once."""
_SAID_CHARS: Final = 300


class LakeOutcome(Struct, frozen=True):
    """The result of a step."""

    step: LakeStep
    files_before: int
    """Files of the table's version before the step; of a vacuum, files in its folder; of expire, snapshots;
    of a checkpoint, commits to replay."""
    files_after: int
    bytes_before: int
    """Their bytes; of snapshots and commits those of the log."""
    bytes_after: int
    seconds: float
    left: str = ""
    """The reason if something wasn't done."""

    @property
    def line(self) -> str:
        """One line for people."""
        done = f"{self.step.action} {self.step.folder}, {self.seconds:.1f} s"
        if self.left and (self.files_before, self.bytes_before) == (self.files_after, self.bytes_after):
            return f"{done}: nothing was done: {self.left}"
        left = f" ({self.left})" if self.left else ""
        return (
            f"{done}: {self.files_before:,} {self.noun} with {self.bytes_before:,} bytes became "
            f"{self.files_after:,} with {self.bytes_after:,}{left}"
        )

    @property
    def noun(self) -> str:
        match self.step.action:
            case "expire":
                return "snapshots"
            case "checkpoint":
                return "commits to replay"
            case _:
                return "files"


def carry_out(
    lake: Lake, plan: LakePlan, clock: Clock, execute: Executor | None = None
) -> Iterator[LakeOutcome]:
    """Carry out the steps one after the other, and yield the result of each.

    Files are rewritten by `execute`; None: in this process.

    A step that fails, because the table was altered meanwhile for instance, changes nothing, or a part of its
    files; its outcome says why, and the next steps follow.
    """
    for step in plan.steps:
        began = clock.now()
        try:
            before = _measured(lake, step, plan, clock)
        except TidemillError as error:
            yield LakeOutcome(step, 0, 0, 0, 0, clock.now() - began, _said(error))
            continue
        try:
            left = _done(lake, plan, step, clock, execute)
            after = _measured(lake, step, plan, clock)
        except TidemillError as error:
            left, after = _said(error), before
        yield LakeOutcome(step, before[0], after[0], before[1], after[1], clock.now() - began, left)


def _said(error: TidemillError) -> str:
    return " ".join(str(error).split())[:_SAID_CHARS]


def _measured(lake: Lake, step: LakeStep, plan: LakePlan, clock: Clock) -> tuple[int, int]:
    """Return number and bytes of what a step makes fewer."""
    table = lake.table(step.folder)
    if not table.exists():
        return 0, 0
    snapshot = table.log.latest()
    match step.action:
        case "join" | "sort" | "purge":
            sizes = [file.size for file in snapshot.files.values()]
        case "vacuum":
            sizes = [file.size for file in lake.store.listed(step.folder) if not table.is_log(file.name)]
        case "expire" | "checkpoint":
            growth = table.growth(snapshot, cutoff_of(clock, plan.keep_hours))
            count = growth.versions if step.action == "expire" else growth.replayed
            return count, growth.log_bytes
        case _:
            assert_never(step.action)
    return len(sizes), sum(sizes)


def _done(lake: Lake, plan: LakePlan, step: LakeStep, clock: Clock, execute: Executor | None) -> str:
    """Carry out a step; return why not all was done."""
    table = lake.table(step.folder)
    if not table.exists():
        return "there is no such table any more"
    match step.action:
        case "join" | "sort" | "purge":
            now_ms = int(clock.time() * 1000)
            rewriting = Rewriting(lake.store, step.folder, table.log, plan.target_bytes, now_ms, execute)
            return rewriting.run(lambda file: _is_wanted(file, step, plan.target_bytes))
        case "expire":
            table.expire(cutoff_of(clock, plan.keep_hours))
            reach("upkeep.expired")
        case "vacuum":
            return _vacuum(lake, table, step.folder, cutoff_of(clock, plan.keep_hours))
        case "checkpoint":
            table.shorten_log()
        case _:
            assert_never(step.action)
    return ""


def _is_wanted(file: CopyFile, step: LakeStep, target_bytes: int) -> bool:
    if step.partitions and file.partition not in step.partitions:
        return False
    is_old = step.action == "purge" and file.deleted >= LEAST_DELETED * (file.rows or 1) > 0
    return is_small(file, target_bytes) or is_old


def _vacuum(lake: Lake, table: TableUpkeep, folder: str, cutoff_ms: int) -> str:
    """Remove the files that no kept version needs and that were written before a time."""
    listed = lake.store.listed(folder)  # before the versions: a commit may name a file from now on
    if names := lake.unannounced().get(folder):
        return (
            f"a feed has yet to add {len(names)} files of a commit, which look like leftovers until then: "
            "let the feed run on, then repeat this step"
        )
    kept = table.kept(table.log.latest(), cutoff_ms)
    old = [file.name for file in unused(table, listed, kept) if file.modified_ms < cutoff_ms]

    def remove(name: str) -> None:
        reach("upkeep.removing")
        lake.store.remove(f"{folder}/{name}")

    in_parallel(_THREADS, remove, old)
    return ""
