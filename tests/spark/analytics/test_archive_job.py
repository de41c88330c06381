from __future__ import annotations

import json
from collections import Counter

import pytest

from tidemill.errors import SinkError
from tidemill.spark.analytics.archive_job import analyze_archive, overlap
from tidemill.spark.archive.files import File

from .test_archive import World, changes


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path / "archive")
    yield world
    world.sink.close()


def test_it_tells_what_of_an_archive_is_still_true(spark, world):
    world.follow(12)
    world.add_column()
    world.follow(2)
    report = analyze_archive(spark, world.directory)
    people, loose = report.tables
    found = changes(world.directory, "shop.people")
    assert (people.table, people.changes) == ("shop.people", len(found))
    assert people.live == len(world.people) < people.changes
    assert people.deletes == sum(row["op"] == "delete" for row in found)
    assert people.files == len(list(world.directory.glob("table=shop.people/*/*")))
    assert 0 < people.dead_bytes < people.bytes
    assert people.read_amplification == len(found) / len(world.people)
    assert (loose.left, loose.live, loose.dead_bytes) == ("it has no key", 14, 0)
    days = [day for day in report.days if day.table == "shop.people"]
    assert [day.date for day in days] == sorted(day.date for day in days)
    assert len(days) == 2
    assert sum(day.changes for day in days) == people.changes
    assert sum(day.live for day in days) == people.live
    keys: Counter[tuple] = Counter()
    for row in found:
        images = [row[image] for image in ("before", "after") if row[image]]
        keys.update({(image["id"], image["name"]) for image in images})
    hottest = json.loads(report.hot_keys[0].key)
    assert report.hot_keys[0].changes == max(keys.values())
    assert keys[int(hottest["id"]), hottest["name"]] == max(keys.values())


def test_what_is_no_archive_is_said(spark, tmp_path):
    with pytest.raises(SinkError, match="is no archive: it has no _tidemill"):
        analyze_archive(spark, tmp_path)


def test_files_overlap_where_they_share_a_ts(tmp_path):
    assert overlap([]) == 0
    assert overlap([File(1, 5, tmp_path), File(6, 9, tmp_path)]) == 1
    assert overlap([File(1, 5, tmp_path), File(5, 9, tmp_path), File(2, 3, tmp_path)]) == 2
