"""A feed from MariaDB into an object store: checked, run, killed, and read back by Arrow."""

from __future__ import annotations

from itertools import count, cycle, islice

import pyarrow.dataset as ds
import pytest

from tidemill.failpoint import POINTS as ALL_POINTS
from tidemill.testing.feeds import CopiedTable
from tidemill.testing.progress import eventually


@pytest.fixture
def place(mariadb, database, tmp_path):
    return CopiedTable(tmp_path, mariadb, database)


def changes(place, server, path):
    """Return the changes of the table, in the order of their keys, each of which is there once."""
    files = server.files()
    folder = f"{path}/table={place.schema}.item"
    found = ds.dataset(folder, filesystem=files, partitioning="hive").to_table().to_pylist()
    keys = [(row["source"], row["commit_ts"], row["start_ts"], row["sequence"]) for row in found]
    assert len(set(keys)) == len(keys)
    return [row for _, row in sorted(zip(keys, found, strict=True), key=lambda pair: pair[0])]


def rebuilt(found):
    rows = {}
    for change in found:
        if change["op"] == "insert":
            assert change["after"]["id"] not in rows
        else:
            del rows[change["before"]["id"]]
        if change["after"] is not None:
            rows[change["after"]["id"]] = change["after"]["name"]
    return sorted(rows.items())


def killed(place, server, path, points):
    """Kill the feed at each point, while rows change, and compare what the store has in the end."""
    place.configure(sinks=[server.url(path, flush_seconds=0.1)])
    ids = count(10)
    for point in points:
        with place.start(failpoint=point) as running:

            def changed(running=running):
                number = next(ids)
                place.insert(number)
                place.execute(
                    f"UPDATE {place.schema}.item SET name = 'other' WHERE id = {number - 1}",
                    f"DELETE FROM {place.schema}.item WHERE id = {number - 5}",
                )
                return running.process.poll() is not None

            eventually(changed, sign=lambda: next(ids))
            running.dies()
    assert place.run().status == 0
    assert rebuilt(changes(place, server, path)) == sorted(place.present())


def test_a_feed_is_checked_run_and_killed(place, s3_server, bucket):
    place.configure(sinks=[s3_server.url(f"{bucket}/copy", flush_seconds=0.1)])
    checked = place.call("check", str(place.config))
    assert f"ok      sink a: bucket '{bucket}' is there\n" in checked.out
    assert "ok      sink a: begins with a snapshot\n" in checked.out
    killed(place, s3_server, f"{bucket}/copy", ["storage.publishing:2"])
    assert "sink a: goes on from " in place.call("check", str(place.config)).out
    status = place.status()
    assert status is not None
    assert status.sinks[0].target == f"s3:{s3_server.endpoint}/{bucket}/copy"


@pytest.mark.soak
def test_a_feed_is_killed_very_often(place, s3_server, bucket):
    points = [point for point in ALL_POINTS if point.startswith(("storage.", "sink."))]
    points.remove("sink.altered")
    often = [f"{point}:{1 + number % 5}" for number, point in enumerate(islice(cycle(points), 100))]
    killed(place, s3_server, f"{bucket}/copy", often)


def test_a_missing_bucket_is_a_sentence(place, s3_server):
    place.configure(sinks=[s3_server.url("nowhere/copy")])
    assert "there is no bucket 'nowhere': create it, or correct the URL" in place.run().sentence


def test_a_feed_that_ends_doesnt_wait_until_a_commit_is_due(place, s3_server, bucket):
    place.configure(sinks=[s3_server.url(f"{bucket}/copy", flush_seconds=3600)])
    assert place.run().status == 0
    place.insert(4)
    assert place.run().status == 0
    assert rebuilt(changes(place, s3_server, f"{bucket}/copy")) == sorted(place.present())
    assert place.run().status == 0
