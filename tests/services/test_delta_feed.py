"""A feed from MariaDB into Delta tables: killed while rows and columns change, and read back by delta-rs."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count, cycle, islice

import pytest
from deltalake import DeltaTable

from tidemill.failpoint import POINTS as ALL_POINTS
from tidemill.testing.feeds import CopiedTable
from tidemill.testing.progress import eventually
from tidemill.testing.s3 import LOGIN, S3Process

POINTS = [point for point in ALL_POINTS if point.startswith(("storage.", "lake.", "sink."))]
POINTS.remove("sink.altered")


@pytest.fixture
def place(mariadb, database, tmp_path):
    return CopiedTable(tmp_path, mariadb, database)


def changes(table: DeltaTable) -> list[dict]:
    """Return a table's changes in the order of their keys, each of which is there once."""
    rows = table.to_pyarrow_table().to_pylist()
    keys = [(row["source"], row["commit_ts"], row["start_ts"], row["sequence"]) for row in rows]
    assert len(set(keys)) == len(keys)
    return [row for _, row in sorted(zip(keys, rows, strict=True), key=lambda pair: pair[0])]


def rebuilt(place: CopiedTable, opened: Callable[[str], DeltaTable]) -> list[tuple]:
    """Return the present rows: each change is applied once, and a statement to the rows before it."""
    name = f"{place.schema}.item"
    statements = [one for one in changes(opened("ddl")) if f"{one['schema']}.{one['table']}" == name]
    both = [*changes(opened(name)), *statements]
    rows: dict[int, str] = {}
    for change in sorted(both, key=lambda one: (one["commit_ts"], one["start_ts"], one["sequence"])):
        if change["op"] == "truncate":
            rows.clear()
        if change.get("before") is not None:
            del rows[change["before"]["id"]]
        if change.get("after") is not None:
            assert change["after"]["id"] not in rows
            rows[change["after"]["id"]] = change["after"]["name"]
    return sorted(rows.items())


def present(place: CopiedTable) -> list[tuple]:
    return sorted(place.execute(f"SELECT id, name FROM {place.schema}.item"))


def killed(place: CopiedTable, url: str, points: list[str]) -> None:
    place.configure(sinks=[url])
    ids = count(10)
    for number, point in enumerate(points):
        with place.start(failpoint=point) as running:
            place.execute(f"ALTER TABLE {place.schema}.item ADD COLUMN more_{number} INT NOT NULL DEFAULT 7")

            def changed(running=running):
                number = next(ids)
                place.execute(
                    f"INSERT INTO {place.schema}.item (id, name) VALUES ({number}, 'item {number}')",
                    f"UPDATE {place.schema}.item SET name = 'other' WHERE id = {number - 1}",
                    f"DELETE FROM {place.schema}.item WHERE id = {number - 5}",
                )
                return running.process.poll() is not None

            eventually(changed, sign=lambda: next(ids))
            running.dies()
        if number % 3 == 2:
            place.execute(f"TRUNCATE TABLE {place.schema}.item")
    assert place.run().status == 0


def test_a_feed_is_killed_at_every_point_of_a_commit(place, tmp_path):
    folder = tmp_path / "lake"
    killed(
        place, f"delta://{folder}?flush_seconds=0.1&journal_seconds=0.1", [f"{point}:2" for point in POINTS]
    )
    assert rebuilt(place, lambda name: DeltaTable(folder / name)) == present(place)
    named = [one.name for one in DeltaTable(folder / f"{place.schema}.item").schema().fields]
    assert named == [
        "source", "commit_ts", "start_ts", "sequence", "op", "snapshot", "before", "after", "date",
    ]  # fmt: skip


@pytest.mark.soak
def test_a_feed_is_killed_very_often(place, tmp_path):
    folder = tmp_path / "lake"
    often = [f"{point}:{1 + number % 5}" for number, point in enumerate(islice(cycle(POINTS), 60))]
    killed(place, f"delta://{folder}?flush_seconds=0.1&journal_seconds=0.1", often)
    assert rebuilt(place, lambda name: DeltaTable(folder / name)) == present(place)


def test_a_feed_into_a_bucket_is_killed(place):
    os.environ.update(LOGIN)
    with S3Process() as server:
        server.bucket("lake")
        url = f"delta+{server.url('lake/copy', flush_seconds=0.1, journal_seconds=0.1)}"
        killed(place, url, ["storage.publishing:2", "lake.adding:2", "lake.telling:1"])
        storage = {"AWS_ENDPOINT_URL": server.endpoint, "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}

        def opened(name: str) -> DeltaTable:
            return DeltaTable(f"s3://lake/copy/{name}", storage_options=storage)

        assert rebuilt(place, opened) == present(place)
        assert "sink a: goes on from " in place.call("check", str(place.config)).out
