"""The comparison sees each kind of fault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from .compared import Form, differences
from .workload import DELETE, INSERT, OPERATIONS, TABLES, Workload


def lines() -> tuple[Workload, list[dict[str, Any]]]:
    """A workload, and its changes as a stream writes them."""
    workload = Workload()
    for size in (3, 1, 30, 2, 90, 6):
        workload.transaction(size)
    found: list[dict[str, Any]] = []
    changes = workload.changes()
    for txn, table, op, id_, before, after in zip(*(column.tolist() for column in changes), strict=True):
        opens = not found or found[-1]["commit_ts"] != txn + 100
        if opens and found:
            found[-1]["position"] = "log:1"
        found.append(
            {
                "commit_ts": txn + 100,
                "start_ts": txn + 100,
                "sequence": 0 if opens else found[-1]["sequence"] + 1,
                "table": TABLES[table],
                "op": OPERATIONS[op],
                "before": text(id_, before) if op != INSERT else None,
                "after": text(id_, after) if op != DELETE else None,
                "position": None,
            }
        )
    found[-1]["position"] = "log:1"
    return workload, found


def text(id_: int, v: int) -> str:
    return f'{{"id":"{id_}","v":"{v}","price":"{v}.25","name":"row {v} {"x" * (v % 50)}"}}'


def swapped(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [*found[:7], found[8], found[7], *found[9:]]


def renumbered(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    numbers = [line["sequence"] for line in found]
    return [{**line, "sequence": number} for line, number in zip(swapped(found), numbers, strict=True)]


FAULTS: dict[str, Callable[[list[dict[str, Any]]], list[dict[str, Any]]]] = {
    "lost": lambda found: [*found[:5], *found[6:]],
    "the last one lost": lambda found: found[:-1],
    "doubled": lambda found: [*found, found[5]],
    "out of order": swapped,
    "numbered in another order": renumbered,
    "another one's image": lambda found: [*found[:-1], {**found[-1], "after": found[0]["after"]}],
    "no end": lambda found: [{**line, "position": None} for line in found],
    "divided": lambda found: [
        {**line, "commit_ts": line["commit_ts"] + (n > 8)} for n, line in enumerate(found)
    ],
}


def written(directory: Path, found: list[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(found), directory / "part.parquet")
    return directory


def test_none_in_what_is_the_same(tmp_path: Path) -> None:
    workload, found = lines()
    assert differences(written(tmp_path, found), workload.changes(), Form()) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen(tmp_path: Path, fault: str) -> None:
    workload, found = lines()
    assert differences(written(tmp_path, FAULTS[fault](found)), workload.changes(), Form())
