"""Schema keys written by a real TiDB: see tests/vectors."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tidemill.codec.tidb.job import Job
from tidemill.codec.tidb.job_entry import read_job
from tidemill.events import DELETE, PUT, KvChange

VECTORS = Path(__file__).parents[2] / "vectors"
VERSIONS = ("v8.1.0", "v6.1.0")


class Written(NamedTuple):
    """One key of a transaction."""

    change: KvChange
    where: str
    """mysql.tidb_ddl_job, m:DDLJobList and so on."""
    field: str
    """Field of a hash."""
    job_id: int | None


def lines(name: str, version: str) -> Iterator[dict[str, Any]]:
    with gzip.open(VECTORS / f"{name}-{version}.jsonl.gz", "rt") as file:
        for line in file:
            yield json.loads(line)


def jobs(version: str) -> list[dict[str, Any]]:
    """The statements that left a job, with what it was in the history."""
    return [line for line in lines("ddl_jobs", version) if line["job_json"]]


def transactions(version: str) -> Iterator[tuple[str, list[Written]]]:
    """Yield each DDL statement with the keys that its transaction wrote."""
    for line in lines("ddl_events", version):
        if line["kind"] == "commit":
            yield line["sql"], [_written(line, entry) for entry in line["entries"]]


def effects(version: str) -> list[tuple[int, Job]]:
    """The commit ts of each job that takes effect, and of a part of one."""
    found: list[tuple[int, Job]] = []
    done: set[int] = set()
    early: dict[int, int] = {}
    for _, written in transactions(version):
        for change, *_ in written:
            job = read_job(change)
            if job and job.shows_in_rows:
                early.setdefault(job.id, change.commit_ts)
            if job and job.is_in_effect and job.id not in done:
                found.append((early.get(job.id, change.commit_ts), job))
                if job.is_done:
                    done.add(job.id)
    return found


def _written(line: dict[str, Any], entry: dict[str, Any]) -> Written:
    value = entry["value_hex"]
    change = KvChange(
        line["commit_ts"],
        line["start_ts"],
        DELETE if entry["op"] == "Del" else PUT,
        bytes.fromhex(entry["key_hex"]),
        bytes.fromhex(value or ""),
    )
    return Written(change, entry["where"], entry.get("meta_field") or "", entry.get("job_id"))
