"""A feed from MariaDB into the tables of a lake: killed while rows and columns change, and read back by the
lake's own library."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog

from tidemill.failpoint import POINTS as ALL_POINTS
from tidemill.testing.feeds import CopiedTable
from tidemill.testing.progress import eventually
from tidemill.testing.s3 import LOGIN, S3Process

POINTS = [point for point in ALL_POINTS if point.startswith(("storage.", "lake.", "sink."))]
POINTS.remove("sink.altered")
OFTEN = "flush_seconds=0.1&journal_seconds=0.1"
Read = Callable[[str], list[dict[str, Any]]]
"""Returns the rows of a table, by its folder."""


def delta(folder: Path) -> Read:
    return lambda name: DeltaTable(folder / name).to_pyarrow_table().to_pylist()


def iceberg(catalog: Catalog) -> Read:
    def rows(name: str) -> list[dict[str, Any]]:
        schema, _, table = name.partition(".")
        identifier = (schema, table) if table else ("tidemill", name)
        return catalog.load_table(identifier).scan().to_arrow().to_pylist()

    return rows


def in_sqlite(folder: Path) -> Catalog:
    return SqlCatalog("tidemill", uri=f"sqlite:///{folder}/catalog.db")


@pytest.fixture
def place(mariadb, database, tmp_path):
    return CopiedTable(tmp_path, mariadb, database)


def changes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a table's changes in the order of their keys, each of which is there once."""
    keys = [(row["source"], row["commit_ts"], row["start_ts"], row["sequence"]) for row in rows]
    assert len(set(keys)) == len(keys)
    return [row for _, row in sorted(zip(keys, rows, strict=True), key=lambda pair: pair[0])]


def rebuilt(place: CopiedTable, read: Read) -> list[tuple]:
    """Return the present rows: each change is applied once, and a statement to the rows before it."""
    name = f"{place.schema}.item"
    statements = [one for one in changes(read("ddl")) if f"{one['schema']}.{one['table']}" == name]
    both = [*changes(read(name)), *statements]
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


def url_of(kind: str, folder: Path) -> str:
    return f"{'iceberg+sql' if kind == 'iceberg' else kind}://{folder}?{OFTEN}"


def reader(kind: str, folder: Path) -> Read:
    return iceberg(in_sqlite(folder)) if kind == "iceberg" else delta(folder)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_feed_is_killed_at_every_point_of_a_commit(place, tmp_path, kind):
    folder = tmp_path / "lake"
    killed(place, url_of(kind, folder), [f"{point}:2" for point in POINTS])
    read = reader(kind, folder)
    assert rebuilt(place, read) == present(place)
    assert list(read(f"{place.schema}.item")[0]) == [
        "source", "commit_ts", "start_ts", "sequence", "op", "snapshot", "before", "after", "date",
    ]  # fmt: skip


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_feed_is_killed_very_often(place, tmp_path, kind):
    folder = tmp_path / "lake"
    often = [f"{point}:{1 + number % 5}" for number, point in enumerate(islice(cycle(POINTS), 60))]
    killed(place, url_of(kind, folder), often)
    assert rebuilt(place, reader(kind, folder)) == present(place)


AT_THE_STORE = ["storage.publishing:2", "lake.adding:2", "lake.telling:1"]


def test_a_feed_into_delta_tables_in_a_bucket_is_killed(place):
    os.environ.update(LOGIN)
    with S3Process() as server:
        server.bucket("lake")
        url = f"delta+{server.url('lake/copy', flush_seconds=0.1, journal_seconds=0.1)}"
        killed(place, url, AT_THE_STORE)
        storage = {"AWS_ENDPOINT_URL": server.endpoint, "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}

        def read(name: str) -> list[dict[str, Any]]:
            table = DeltaTable(f"s3://lake/copy/{name}", storage_options=storage)
            return table.to_pyarrow_table().to_pylist()

        assert rebuilt(place, read) == present(place)
        assert "sink a: goes on from " in place.call("check", str(place.config)).out


def test_a_feed_into_a_rest_catalog_and_a_bucket_is_killed(place, iceberg_rest):
    os.environ.update(LOGIN)
    with S3Process() as server:
        server.bucket("lake")
        rest = f"127.0.0.1:{iceberg_rest.port}"
        url = f"iceberg+rest://{rest}?location=s3://lake/copy&endpoint={server.endpoint}&{OFTEN}"
        killed(place, url, AT_THE_STORE)
        access = {
            "s3.endpoint": server.endpoint,
            "s3.region": "us-east-1",
            "s3.access-key-id": LOGIN["AWS_ACCESS_KEY_ID"],
            "s3.secret-access-key": LOGIN["AWS_SECRET_ACCESS_KEY"],
        }
        assert rebuilt(place, iceberg(RestCatalog("rest", uri=f"http://{rest}", **access))) == present(place)
        said = place.call("check", str(place.config)).out
        assert "sink a: the catalog answers" in said
        assert "sink a: goes on from " in said
