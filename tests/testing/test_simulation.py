"""Whole feeds in a simulated world: seeds, their traces, and planted bugs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

import tidemill
from tidemill.testing.simulation.mutants import MUTANTS, Mutant
from tidemill.testing.simulation.plan import Plan, Step, plan_of
from tidemill.testing.simulation.run import run_plan, run_seed, run_seeds, shrunk
from tidemill.testing.simulation.shrink import shrink
from tidemill.testing.simulation.story import readable, story

SEEDS = 300
CHUNK = 50


def reports(tally) -> str:
    return "\n\n".join(story(shrunk(result)) for result in tally.failed[:1])


@pytest.mark.long
@pytest.mark.parametrize("first", range(1, SEEDS + 1, CHUNK))
def test_the_target_is_the_source_as_of_its_checkpoint_whatever_happens(first):
    tally = run_seeds(range(first, first + CHUNK))
    assert not tally.failed, reports(tally)
    assert not tally.unreached
    assert tally.kills > CHUNK / 4


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_001, 11_001, 1_000))
def test_ten_thousand_seeds(first):
    tally = run_seeds(range(first, first + 1_000))
    assert not tally.failed, reports(tally)


@pytest.mark.parametrize("seed", [2, 7, 11])
def test_the_same_seed_gives_the_same_trace(seed):
    assert run_seed(seed).trace == run_seed(seed).trace


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


def test_what_a_failure_does_not_need_is_left_out():
    steps = tuple(Step(float(number), "kill" if number % 2 else "write", number) for number in range(20))
    plan = replace(plan_of(1), steps=steps)

    def fails(smaller: Plan) -> bool:
        return {3, 8} <= {step.seed for step in smaller.steps}

    assert [step.seed for step in shrink(plan, fails).steps] == [3, 8]


def test_a_timestamp_is_told_as_virtual_time():
    ts = ((1_700_000_004_633) << 18) + 2
    assert readable(f"committed at {ts}, 12 rows") == "committed at 4.633+2, 12 rows"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_code_of_a_mutant_is_there_once(mutant: Mutant):
    path = Path(tidemill.__file__).parent / mutant.file
    assert mutant.plant(path.read_text()) != path.read_text()


@pytest.mark.parametrize("mutant", [m for m in MUTANTS if m.within <= 10], ids=lambda mutant: mutant.name)
def test_a_bug_is_found(mutant: Mutant):
    assert hunted(mutant)


@pytest.mark.soak
@pytest.mark.parametrize("mutant", [m for m in MUTANTS if m.within > 10], ids=lambda mutant: mutant.name)
def test_a_rare_bug_is_found(mutant: Mutant):
    assert hunted(mutant)


def hunted(mutant: Mutant) -> bool:
    """Return True if one of the mutant's seeds fails."""
    command = [sys.executable, "-m", "tidemill.testing.simulation", "--mutant", mutant.name]
    done = subprocess.run(
        [*command, "--seeds", str(mutant.within)], capture_output=True, text=True, check=False
    )
    assert not done.stderr, done.stderr
    return done.returncode == 1 and done.stdout.startswith("seed ")
