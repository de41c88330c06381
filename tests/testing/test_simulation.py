"""Whole feeds in a simulated world: seeds, their traces, and planted bugs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

import tidemill
from tidemill.errors import StoreError
from tidemill.store.batch import PairBatch
from tidemill.store.store import Store
from tidemill.testing.simulation.disk import DISK_FAULTS, Disk
from tidemill.testing.simulation.mutants import MUTANTS, SIMULATED
from tidemill.testing.simulation.mutants.mutant import Mutant
from tidemill.testing.simulation.plan import Plan, Step, plan_of
from tidemill.testing.simulation.run import run_plan, run_seed, run_seeds, shrunk
from tidemill.testing.simulation.shrink import shrink
from tidemill.testing.simulation.story import readable, story

SEEDS = 300
BINLOG_SEEDS = 100
CHUNK = 50
ROOT = Path(tidemill.__file__).parent
SHIPPED = {
    "ticdc#2943",
    "ticdc#3663",
    "ticdc#5005",
    "ticdc#5083",
    "ticdc#5401",
    "ticdc#5658",
    "FLINK-39149",
    "FLINK-39207",
    "FLINK-39230",
    "flink-cdc b8edfcfd3",
    "peerdb#4535",
    "peerdb#4551",
    "dbz#2221",
    "dbz#2266",
    "dbz#2519",
    "maxwell#2150",
}
SAMPLE = [mutant for mutant in SIMULATED if mutant.within <= 10][::8]
"""Bugs that are planted in a short run, too."""


def reports(tally) -> str:
    return "\n\n".join(story(shrunk(result)) for result in tally.failed[:1])


@pytest.mark.long
@pytest.mark.parametrize("first", range(1, SEEDS + 1, CHUNK))
def test_the_target_is_the_source_as_of_its_checkpoint_whatever_happens(first):
    tally = run_seeds(range(first, first + CHUNK))
    assert not tally.failed, reports(tally)
    assert not tally.unreached
    assert tally.kills > CHUNK / 4


@pytest.mark.long
@pytest.mark.parametrize("first", range(1, BINLOG_SEEDS + 1, CHUNK))
def test_the_target_of_a_binlog_is_the_source_as_of_its_checkpoint(first):
    tally = run_seeds(range(first, first + CHUNK), "binlog")
    assert not tally.failed, reports(tally)
    assert not tally.unreached
    assert tally.kills > CHUNK / 4


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_001, 11_001, 1_000))
@pytest.mark.parametrize("source", ["tikv", "binlog"])
def test_ten_thousand_seeds(source, first):
    tally = run_seeds(range(first, first + 1_000), source)
    assert not tally.failed, reports(tally)


@pytest.mark.parametrize("source", ["tikv", "binlog"])
@pytest.mark.parametrize("seed", [2, 7, 11])
def test_the_same_seed_gives_the_same_trace(seed, source):
    assert run_seed(seed, source).trace == run_seed(seed, source).trace


def test_another_process_gives_the_same_trace():
    command = [sys.executable, "-m", "tidemill.testing.simulation", "--seed", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = run_seed(5)
    assert done.stdout.splitlines()[1 : len(result.story) + 1] == "\n".join(result.story).splitlines()
    assert f"trace {result.digest}" in done.stdout


def test_a_world_without_faults_has_no_violation():
    calm = replace(plan_of(3), steps=tuple(step for step in plan_of(3).steps if not step.is_fault))
    assert run_plan(calm).violations == []


@pytest.mark.parametrize("at", [2.0, 3.0, 4.0, 4.5])
@pytest.mark.parametrize("seed", [0, 2])
def test_a_table_may_be_loaded_again_before_the_first_snapshot_has_ended(at, seed):
    steps = Step(at, "reload", seed), Step(at + 0.05, "kill", 1)
    plan = replace(plan_of(1), rows=12, tables=3, scan_page=3, target_latency_seconds=0.2, steps=steps)
    assert run_plan(plan).violations == []


@pytest.mark.parametrize("seed", [76, 92])
def test_a_late_commit_of_another_load_is_no_error(seed):
    assert run_seed(seed).violations == []


def test_what_a_failure_does_not_need_is_left_out():
    steps = tuple(Step(float(number), "kill" if number % 2 else "write", number) for number in range(20))
    plan = replace(plan_of(1), steps=steps)

    def fails(smaller: Plan) -> bool:
        return {3, 8} <= {step.seed for step in smaller.steps}

    assert [step.seed for step in shrink(plan, fails).steps] == [3, 8]


def test_a_timestamp_is_told_as_virtual_time():
    ts = ((1_700_000_004_633) << 18) + 2
    assert readable(f"committed at {ts}, 12 rows") == "committed at 4.633+2, 12 rows"


def named(mutants):
    return pytest.mark.parametrize("mutant", mutants, ids=lambda mutant: mutant.name)


@named(MUTANTS)
def test_the_code_of_a_mutant_is_there_once(mutant: Mutant):
    texts: dict[str, str] = {}
    for patch in mutant.patches:
        path = Path(tidemill.__file__).parent / patch.file
        before = texts.get(patch.file) or path.read_text()
        texts[patch.file] = patch.apply(before)
        assert texts[patch.file] != before
    for file, text in texts.items():
        compile(text, file, "exec")


def test_bugs_that_others_shipped_are_planted():
    assert {source for mutant in MUTANTS for source in mutant.source.split(", ")} >= SHIPPED
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_nearly_every_bug_must_be_found():
    survivors = [mutant for mutant in MUTANTS if mutant.survives]
    assert len(survivors) <= len(MUTANTS) / 20


def test_a_test_that_must_find_a_bug_is_there():
    for mutant in MUTANTS:
        file, _, name = mutant.killed_by.partition("::")
        if file:
            assert f"def {name}(" in (ROOT / file).read_text(), mutant.name


@named(SAMPLE)
def test_a_bug_is_found(mutant: Mutant):
    assert_found(mutant)


@pytest.mark.soak
@named([mutant for mutant in MUTANTS if not mutant.survives and mutant not in SAMPLE])
def test_every_bug_is_found(mutant: Mutant):
    assert_found(mutant)


def assert_found(mutant: Mutant) -> None:
    """Check that one of the mutant's seeds fails, or its test."""
    command = [sys.executable, "-m", "tidemill.testing.simulation", "--mutant", mutant.name]
    done = subprocess.run(
        [*command, "--seeds", str(mutant.within)], capture_output=True, text=True, check=False
    )
    assert not done.stderr, done.stderr
    assert done.returncode == 1, done.stdout
    assert done.stdout.startswith(mutant.killed_by or "seed "), done.stdout


@pytest.mark.parametrize("fault", DISK_FAULTS)
def test_a_disk_that_fails_is_an_error_of_the_store(fault, tmp_path):
    disk = Disk(lambda _who, _what: None)
    with disk.attached():
        store = Store(tmp_path / "store")
        batch = PairBatch()
        for number in range(3):
            batch.put(bytes([number]), b"value", 1)
        window = store.write(batch)
        disk.faults.append(fault)
        if fault == "full":
            with pytest.raises(StoreError, match="no space left"):
                store.write(batch)
        elif fault in ("unreadable", "short"):
            with pytest.raises(StoreError, match="can't be read"):
                list(store.iterate(window, b"", b"\xff"))
        elif fault == "lost":
            assert store.get(window, batch.pairs[0][0]) is None
        else:
            assert list(store.iterate(window, b"", b"\xff")) != batch.pairs
        assert disk.hits == 1
        store.close()
