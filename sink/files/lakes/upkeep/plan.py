"""The plan that keeps a lake quick to read: steps with their costs, as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from .....errors import ConfigError
from .report import LakePartition, LakeReport, LakeTable

VERSION: Final = 2
TARGET_BYTES: Final = 128 << 20
"""Size of a joined file: a row group or two, and more than a minute of most feeds."""
LEAST_JOINED: Final = 4
"""Small files in a partition from which joining them is worth a step."""
LEAST_DELETED: Final = 0.1
"""Share of deleted rows from which rewriting their files is worth a step."""
MOST_REPLAYED: Final = 20
"""Commits after a checkpoint from which a new one is worth a step."""
LEAST_EXPIRED: Final = 20
"""Old snapshots from which forgetting them is worth a step."""

Action: TypeAlias = Literal["join", "sort", "purge", "expire", "vacuum", "checkpoint"]


class LakeStep(Struct, frozen=True, forbid_unknown_fields=True):
    """One command on one table. Costs are as of when the plan was made."""

    folder: str
    action: Action
    """join: small files become large ones; sort: small files of a history do, by commit ts; purge: files with
    deleted rows are written again without them, and small ones are joined; expire: old snapshots are
    forgotten; vacuum: files that no kept version has are removed; checkpoint: the log gets a checkpoint, and
    its expired commits are removed."""
    partitions: list[str]
    """Names; empty: all."""
    files_before: int
    """Files; of expire snapshots, of checkpoint commits to replay."""
    files_after: int
    writes_bytes: int
    frees_bytes: int
    """Bytes that aren't needed afterwards. Those of join, sort and purge are freed by a later vacuum."""
    seconds: float
    """Estimate."""


class LakePlan(Struct, frozen=True, forbid_unknown_fields=True):
    """Steps by table, in their order. Each step looks at its table again, so an old plan wastes work and
    loses nothing."""

    version: int
    lake: str
    """URL of the lake."""
    keep_hours: Annotated[int, Meta(ge=1)]
    target_bytes: Annotated[int, Meta(ge=1)]
    steps: list[LakeStep]


def plan_of(report: LakeReport, target_bytes: int = TARGET_BYTES) -> LakePlan:
    steps = [step for table in report.tables for step in _steps(table)]
    return LakePlan(VERSION, report.url, report.keep_hours, target_bytes, steps)


def _steps(table: LakeTable) -> Iterator[LakeStep]:
    rate = table.read_seconds / table.bytes if table.bytes else 0.0
    if table.deleted_share >= LEAST_DELETED:
        yield _rewrite("purge", table, table.partitions, rate)
    else:
        small = [one for one in table.partitions if one.small_files >= LEAST_JOINED]
        if small:
            yield _rewrite("sort" if table.kind == "history" else "join", table, small, rate)
    if table.old_versions >= LEAST_EXPIRED or (table.old_versions and table.removable_files):
        yield _step(table, "expire", before=table.versions, after=table.versions - table.old_versions)
    if table.removable_files and not table.unannounced:
        yield _step(table, "vacuum", before=table.removable_files, frees=table.removable_bytes)
    if table.has_checkpoints and table.replayed > MOST_REPLAYED:
        yield _step(table, "checkpoint", before=table.replayed, after=1)


def _step(table: LakeTable, action: Action, *, before: int, after: int = 0, frees: int = 0) -> LakeStep:
    return LakeStep(table.folder, action, [], before, after, 0, frees, _LOG_SECONDS)


_LOG_SECONDS: Final = 1.0
"""Time of steps that list files, on a local disk."""
_WRITE_FACTOR: Final = 3.0
"""Time to read and write Parquet, as a multiple of the time to read it."""


def _rewrite(action: Action, table: LakeTable, partitions: list[LakePartition], rate: float) -> LakeStep:
    size = sum(one.bytes for one in partitions)
    names = [one.name for one in partitions]
    return LakeStep(
        folder=table.folder,
        action=action,
        partitions=names if len(names) < len(table.partitions) else [],
        files_before=sum(one.files for one in partitions),
        files_after=sum(one.files_after for one in partitions),
        writes_bytes=size,
        frees_bytes=size,
        seconds=size * rate * _WRITE_FACTOR,
    )


def encode_lake_plan(plan: LakePlan) -> str:
    return msgspec.json.format(msgspec.json.encode(plan)).decode() + "\n"


def decode_lake_plan(text: str | bytes, where: str) -> LakePlan:
    """Decode a plan. Raises ConfigError that names `where` the text was."""
    try:
        plan = msgspec.json.decode(text, type=LakePlan)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{where} is no plan of a lake: {error}") from None
    if plan.version != VERSION:
        raise ConfigError(f"{where} has version {plan.version}; accepted: {VERSION}")
    return plan
