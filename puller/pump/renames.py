"""The new databases of renamed tables, which a job in the history no longer has."""

from __future__ import annotations

from typing import Final

from msgspec import MsgspecError, Struct, json
from msgspec.structs import replace

from ...codec.tidb import meta
from ...codec.tidb.action import Action
from ...codec.tidb.job import Job, make_args
from ...events import Ts
from ..tikv.schema import Reads


class _Moved(Struct, frozen=True):
    schema_id: int
    table_id: int


class _Diff(Struct, frozen=True):
    """A new schema version, as TiDB servers read it: its first table, and the others."""

    schema_id: int
    table_id: int
    affected_options: list[_Moved] | None = None


_DIFF: Final = json.Decoder(_Diff)


async def with_new_databases(job: Job, kv: Reads, ts: Ts) -> Job:
    """Return a RENAME TABLES job of the history with its arguments, from the schema diff of its version.

    TiDB moves such a job to the history without arguments. Any other job is returned as it is. Raises
    SourceError if the diff is missing or can't be decoded.
    """
    if job.type != Action.RENAME_TABLES or job.args() is not None:
        return job
    data = await kv.get(meta.string_key(meta.schema_diff(job.schema_version)), ts)
    if data is None:
        raise job.unreadable("arguments", f"there is no schema diff {job.schema_version}")
    try:
        diff = _DIFF.decode(data)
    except MsgspecError as error:
        raise job.unreadable(f"schema diff {job.schema_version}", error) from error
    moved = [_Moved(diff.schema_id, diff.table_id), *(diff.affected_options or ())]
    args = [{"table_id": one.table_id, "new_schema_id": one.schema_id} for one in moved]
    return replace(job, raw_args=make_args({"rename_table_infos": args}))
