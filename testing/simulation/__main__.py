"""python -m tidemill.testing.simulation --seeds 300"""

from __future__ import annotations

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, get_args

from .mutants import MUTANTS
from .mutants.mutant import Mutant, WorldSource
from .patched import plant

if TYPE_CHECKING:
    from .world import Result


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tidemill.testing.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300, help="number of seeds to run")
    parser.add_argument("--first", type=int, default=1, help="first of them")
    parser.add_argument("--seed", type=int, help="run this one, and show its story")
    parser.add_argument("--source", choices=get_args(WorldSource), default="tikv", help="the worlds' source")
    parser.add_argument("--whole", action="store_true", help="show failed seeds as they are, not shrunk")
    parser.add_argument(
        "--mutants", nargs="?", const="", help="plant each bug of that name or module, and tell what finds it"
    )
    parser.add_argument("--jobs", type=int, default=1, help="number of processes with --mutants")
    parser.add_argument("--most", type=int, default=0, help="seeds for each of --mutants; default: its bound")
    parser.add_argument("--mutant", help="plant this bug, and run the seeds until one fails")
    given = parser.parse_args()
    if given.mutants is not None:
        return _mutants(given.jobs, given.mutants, given.most)
    if given.mutant:
        return _hunt(given.mutant, given.seed, range(given.first, given.first + given.seeds))
    if given.seed is not None:
        return _one(given.seed, given.source, shrinks=not given.whole)
    seeds = range(given.first, given.first + given.seeds)
    return _many(seeds, given.source, shrinks=not given.whole)


def _mutants(jobs: int, names: str, most: int) -> int:
    """Plant each bug in a process of its own, and print a table of what found it."""
    chosen = [one for one in MUTANTS if names in one.name or any(names in each for each in one.modules)]
    found = 0
    _say(f"{'bug':45}  {'module':32}  {'found by':28}  seconds")
    with ThreadPoolExecutor(jobs) as pool:
        for mutant, (by, seconds) in zip(
            chosen, pool.map(lambda one: _found(one, most), chosen), strict=True
        ):
            found += bool(by)
            module = mutant.modules[0].removeprefix("tidemill.")
            _say(f"{mutant.name:45}  {module:32}  {by or 'nothing':28}  {seconds:7.1f}")
    _say(f"{found} of {len(chosen)} bugs found")
    return 0 if all(one.survives for one in chosen) or found == len(chosen) else 1


def _found(mutant: Mutant, most: int) -> tuple[str, float]:
    """Return the seed or the test that finds a bug, empty if none does, and the seconds."""
    began = perf_counter()
    command = [sys.executable, "-m", "tidemill.testing.simulation", "--mutant", mutant.name]
    seeds = ["--seeds", str(most or mutant.within)]
    done = subprocess.run([*command, *seeds], capture_output=True, text=True, check=False)
    by = done.stdout.partition(":")[0] if done.returncode == 1 else ""
    if done.returncode not in (0, 1):
        by = f"error: {(done.stderr.strip() or done.stdout).splitlines()[-1]}"
    return by, perf_counter() - began


def _hunt(name: str, seed: int | None, seeds: range) -> int:
    """Run seeds, or the test, with a bug until one fails; 1 if one did."""
    named = [mutant for mutant in MUTANTS if mutant.name == name]
    if not named:
        names = ", ".join(mutant.name for mutant in MUTANTS)
        raise SystemExit(f"--mutant: no bug is called {name!r}; there are: {names}")
    (mutant,) = named
    plant(mutant)
    if mutant.killed_by:
        return _tested(mutant)
    if seed is not None:
        return _one(seed, mutant.world, shrinks=True)
    from .run import first_failure

    failed = first_failure(seeds, mutant.world)
    if failed is None:
        _say(f"not found by {len(seeds)} seeds")
        return 0
    _say(f"seed {failed.plan.seed}: {failed.violations[0].text}")
    return 1


def _tested(mutant: Mutant) -> int:
    """Run the test that is to find the bug; 1 if it fails."""
    import pytest

    root = Path(__file__).parents[2]
    options = ["-q", "-x", "-p", "no:cacheprovider", "--no-header", "--tb=line", f"--rootdir={root}"]
    with redirect_stdout(StringIO()) as output:
        code = pytest.main([*options, str(root / mutant.killed_by)])
    failed = code == pytest.ExitCode.TESTS_FAILED
    _say(f"{mutant.killed_by}: fails" if failed else output.getvalue() + f"not found by {mutant.killed_by}")
    return int(failed) if failed or code == pytest.ExitCode.OK else 2


def _one(seed: int, source: WorldSource, *, shrinks: bool) -> int:
    from .run import run_seed, shrunk
    from .story import story

    result = run_seed(seed, source)
    if result.violations and shrinks:
        result = shrunk(result)
    _say(story(result))
    _say(f"\n{result.steps} steps in {result.seconds:.1f} virtual seconds, trace {result.digest}")
    return 1 if result.violations else 0


def _many(seeds: range, source: WorldSource, *, shrinks: bool) -> int:
    from .run import run_seeds, shrunk
    from .story import story

    def show(result: Result) -> None:
        if result.violations:
            _say(story(shrunk(result) if shrinks else result) + "\n")
        elif sys.stderr.isatty():
            sys.stderr.write(f"\rseed {result.plan.seed}")

    began, used = perf_counter(), process_time()
    tally = run_seeds(seeds, source, show)
    took, used = perf_counter() - began, process_time() - used
    _say(
        f"{tally.seeds} seeds, {len(tally.failed)} failed; {tally.seeds / took:.1f} a second, "
        f"{used / tally.seeds:.2f} s of CPU each"
    )
    _say(
        f"{tally.seconds:.0f} virtual seconds, {tally.steps} steps, {tally.changes} changes of the source, "
        f"{tally.commits} commits of the target, {tally.kills} kills"
    )
    _say("failpoints: " + ", ".join(f"{name} {count}" for name, count in sorted(tally.points.items())))
    _say(f"not reached: {', '.join(tally.unreached) or 'none'}")
    _say("faults: " + ", ".join(f"{name} {count}" for name, count in sorted(tally.faults.items())))
    return 1 if tally.failed else 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
