"""Captures of live sources in processes of their own: killed, restarted, stopped, full."""

from __future__ import annotations

import os
import signal
import sys
from itertools import pairwise

from tidemill.engine.checkpoint import CheckpointFile
from tidemill.spark.capture import client
from tidemill.spark.offsets.offset import Offset
from tidemill.spark.read.parts import WHOLE
from tidemill.testing.progress import STALL_SECONDS, completed, ended, eventually

from .beds import LEASE, Bed, MariaBed, Running, TikvBed
from .history import rows_of

PARTS = [WHOLE, *WHOLE.divided(2)]


def batch(bed: Bed, start: Offset, number: int) -> Offset:
    """Write some transactions; return the offset after them."""
    bed.burst(10 * number, 10)
    return bed.following(start)


def test_it_gives_what_a_task_reads_by_itself(bed):
    with Running(bed).begun() as capture:
        start = bed.latest()
        for number in range(2):
            end = batch(bed, start, number)
            bed.alter(f"alter table item add column more_{number} int")
            end = batch(bed, end, 50 + number)
            for part in PARTS:
                found = bed.captured(capture.address, start, end, part)
                assert found == bed.alone(start, end, part)
                assert {row["table"] for row in found} or part.of > 1
            assert client.acknowledge([capture.address], LEASE, end) == []
            start = end
        held = client.status(capture.address).held
        assert (held.rows, held.memory_bytes, held.disk_bytes) == (0, 0, 0)
        assert capture.stop() == 0


def test_ranges_of_a_finer_cut_are_the_same(bed):
    """Smaller ranges give the same changes, though a binlog's timestamps depend on the reader."""
    with Running(bed).begun() as capture:
        places = [bed.latest()]
        for number in range(3):
            bed.burst(10 * number, 2)
            places.append(bed.following(places[-1]))
        whole = bed.captured(capture.address, places[0], places[-1])
        assert whole == bed.alone(places[0], places[-1])
        pieces = [row for start, end in pairwise(places) for row in bed.captured(capture.address, start, end)]
        assert pieces == whole


def test_killed_in_the_middle_of_an_answer_every_row_comes_once(bed):
    count = 6  # one transaction and a part of the next
    with Running(bed, hold_after=count).begun() as capture:
        start = bed.latest()
        end = batch(bed, start, 1)
        stream = bed.stream(capture.address, start, end, silent_seconds=STALL_SECONDS)
        found = [next(stream) for _ in range(count)]
        capture.kill()
        found += stream
    assert rows_of(found) == bed.alone(start, end)
    assert len(bed.rest_from) == 1
    assert bed.rest_from != [start]  # the rows that had come were not read again


def test_killed_it_goes_on_from_what_was_acknowledged(bed):
    with Running(bed).begun() as capture:
        start = bed.latest()
        middle = batch(bed, start, 1)
        assert bed.captured(capture.address, start, middle)
        assert client.acknowledge([capture.address], LEASE, middle) == []
        store = CheckpointFile(bed.directory / "state" / "capture.checkpoint")
        eventually(store.load)
        end = batch(bed, middle, 2)
        capture.kill()
        # Without it the query and the writes continue.
        assert rows_of(bed.stream(capture.address, middle, end)) == bed.alone(middle, end)
        last = batch(bed, end, 3)
    with Running(bed).begun() as again:
        assert bed.captured(again.address, middle, last) == bed.alone(middle, last)
        assert bed.captured(again.address, end, last) == bed.alone(end, last)
        assert "the buffer starts after" in bed.refused(again.address, start, last)


def test_killed_before_anything_was_acknowledged_it_begins_anew(bed):
    with Running(bed).begun() as capture:
        start = bed.latest()
        middle = batch(bed, start, 1)
        assert bed.captured(capture.address, start, middle)
        capture.kill()
    with Running(bed).begun() as again:
        end = batch(bed, middle, 2)
        assert "the buffer starts after" in bed.refused(again.address, start, end)
        assert rows_of(bed.stream(again.address, start, end)) == bed.alone(start, end)
        last = batch(bed, end, 3)
        assert bed.captured(again.address, end, last) == bed.alone(end, last)


def test_one_that_hangs_costs_time_only(bed):
    with Running(bed).begun() as capture:
        start = bed.latest()
        end = batch(bed, start, 1)
        os.kill(capture.process.pid, signal.SIGSTOP)
        stream = bed.stream(capture.address, start, end, wait_seconds=0.0, silent_seconds=0.1)
        assert rows_of(stream) == bed.alone(start, end)
        assert bed.rest_from == [start]


def test_when_nobody_reads_the_source_is_slowed_and_everything_is_bounded(bed):
    flags = {"memory_bytes": 1 << 17, "disk_bytes": 1 << 18}
    with Running(bed, **flags).begun() as capture:
        start = bed.latest()
        text = "x" * 4000
        for number in range(40):
            bed.write([("item", 100 * number + n, text) for n in range(8)])
        end = bed.following(start)
        held = eventually(lambda: _blocked(capture))
        assert held.memory_bytes <= flags["memory_bytes"]
        assert held.disk_bytes <= 1.1 * flags["disk_bytes"]
        if isinstance(bed, TikvBed):  # a binlog's puller that can't go on answers late, and so is the status
            status = eventually(lambda: _waiting(bed))
            (sink,) = status.sinks
            assert (sink.name, sink.target) == ("capture", f"flight://{capture.address}")
        # The query continues without it, and its acknowledgements make room.
        assert "the quota is full" in bed.refused(capture.address, start, end)
        assert rows_of(bed.stream(capture.address, start, end)) == bed.alone(start, end)
        assert client.acknowledge([capture.address], LEASE, end) == []
        last = batch(bed, end, 900)
        assert bed.captured(capture.address, end, last) == bed.alone(end, last)
        for number in range(40):
            bed.write([("item", 100_000 + 100 * number + n, text) for n in range(8)])
        eventually(lambda: _blocked(capture))
        assert capture.stop() == 0


def _blocked(capture: Running):
    held = client.status(capture.address).held
    return held if held.blocked_since is not None else None


def _waiting(bed: Bed):
    status = bed.status()
    waits = [wait for wait in status.waits if wait.stage == "sink capture"] if status else []
    return status if waits else None


def test_the_status_command_has_a_line_for_it(bed):
    with Running(bed).begun() as capture:
        start = bed.latest()
        end = batch(bed, start, 1)
        assert bed.captured(capture.address, start, end)
        assert client.acknowledge([capture.address], LEASE, end) == []
        eventually(lambda: (status := bed.status()) and status.sinks[0].position)
        done = completed([sys.executable, "-m", "tidemill.cli", "status", str(bed.config)])
        assert done.returncode == 0, done
        assert f"flight://{capture.address}" in done.stdout
        assert "shop-capture-" in done.stdout


def test_a_table_that_would_be_loaded_again_ends_a_capture_of_mariadb(sql, mariadb, tmp_path):
    aside = f"{sql.database}_aside"
    sql(f"CREATE DATABASE {aside}", f"CREATE TABLE {aside}.old (id BIGINT PRIMARY KEY)")
    try:
        with MariaBed(tmp_path, mariadb, sql.database) as bed, Running(bed).begun() as capture:
            bed.alter(f"RENAME TABLE {aside}.old TO new")
            assert ended(capture.process) == 1
            assert "RENAME TABLE" in capture.log().splitlines()[-1]
    finally:
        sql(f"DROP DATABASE {aside}")


def test_when_its_feed_fails_the_capture_ends_with_the_sentence(bed):
    if isinstance(bed, MariaBed):
        statement = "truncate table other"
        bed.configure("[[on_ddl]]", 'tables = ["*.*"]', 'kinds = ["truncate"]', 'action = "stop"')
    else:
        statement = "rename table aside.old to shop.new"
        bed.alter("create database aside")
        bed.alter("create table aside.old (id bigint primary key)")
    with Running(bed).begun() as capture:
        start = bed.latest()
        end = batch(bed, start, 1)
        bed.alter(statement)
        assert ended(capture.process) == 1
        last = capture.log().splitlines()[-1]
        assert last.startswith("tidemill: ")
        assert statement in last.lower()
        assert rows_of(bed.stream(capture.address, start, end)) == bed.alone(start, end)
    status = bed.status()
    assert status is not None
    assert status.state == "failed"
