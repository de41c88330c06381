"""A compaction plan is handed to a feed that runs in another process's eyes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tidemill
from tidemill.emulator import Tidb
from tidemill.engine.plan_inbox import PlanInbox
from tidemill.errors import CheckpointError
from tidemill.store.plan import VERSION, CompactionPlan, Step, encode_plan
from tidemill.testing.progress import completed


def compact(directory: Path, text: str) -> subprocess.CompletedProcess[str]:
    plan = directory.parent / "plan.json"
    plan.write_text(text)
    command = [sys.executable, "-m", "tidemill.cli", "compact", "--data-dir", directory, "--plan", plan]
    return completed(command)


def test_a_running_feed_carries_out_a_plan_and_says_what_came_of_it(tmp_path):
    directory = tmp_path / "state"
    with Tidb(stores=1) as tidb:
        tidb.execute("create database shop")
        tidb.execute("create table shop.orders (id int primary key)")
        tables, sorter = ["shop.*"], {"memory_bytes": 0}  # all goes through its store
        with tidemill.open(f"tikv://{tidb.pd_address}", tables, data_dir=directory, sorter=sorter) as feed:
            with tidb.transaction() as txn:
                txn.insert("shop.orders", (1,))
            next(iter(feed))
            with tidb.transaction() as txn:
                txn.insert("shop.orders", (2,))
            next(iter(feed))
            (store,) = directory.glob("scratch/store-*")
            plan = CompactionPlan(VERSION, 0, [Step(store.name, "window-99", 10, 1)])
            said = compact(directory, encode_plan(plan))
    assert (said.stderr, said.returncode) == ("", 0)
    assert said.stdout == f"{store.name}/window-99: 0 bytes became 0 (it is gone, or still written to)\n"
    said = compact(directory, encode_plan(plan))
    assert said.returncode == 2
    assert said.stderr == f"tidemill: the feed in {directory} is stopped: only a running one carries it out\n"


def test_what_is_no_plan_is_refused(tmp_path):
    said = compact(tmp_path, '{"steps": 3}')
    assert said.returncode == 2
    assert "plan.json is no compaction plan" in said.stderr


def test_where_no_feed_has_run_nothing_is_left(tmp_path):
    for directory in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(CheckpointError, match="no feed has run here"):
            PlanInbox(directory).hand_over(CompactionPlan(VERSION, 0, []))
    assert list(tmp_path.iterdir()) == []
