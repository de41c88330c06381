"""python -m tidemill.testing.simulation --seeds 300"""

from __future__ import annotations

import argparse
import subprocess
import sys
from time import perf_counter, process_time
from typing import TYPE_CHECKING

from .mutants import MUTANTS
from .patched import plant

if TYPE_CHECKING:
    from .world import Result


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tidemill.testing.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300, help="number of seeds to run")
    parser.add_argument("--first", type=int, default=1, help="first of them")
    parser.add_argument("--seed", type=int, help="run this one, and show its story")
    parser.add_argument("--whole", action="store_true", help="show failed seeds as they are, not shrunk")
    parser.add_argument("--mutants", action="store_true", help="plant each bug, and tell which seed finds it")
    parser.add_argument("--mutant", help="plant this bug, and run the seeds until one fails")
    given = parser.parse_args()
    if given.mutants:
        return _mutants()
    if given.mutant:
        return _hunt(given.mutant, given.seed, range(given.first, given.first + given.seeds))
    if given.seed is not None:
        return _one(given.seed, shrinks=not given.whole)
    return _many(range(given.first, given.first + given.seeds), shrinks=not given.whole)


def _mutants() -> int:
    """Plant each bug in a process of its own."""
    missed = 0
    for mutant in MUTANTS:
        command = [sys.executable, "-m", "tidemill.testing.simulation", "--mutant", mutant.name]
        done = subprocess.run([*command, "--seeds", str(mutant.within)], capture_output=True, text=True)
        missed += done.returncode == 0
        _say(f"{mutant.name}: {done.stdout.strip() or done.stderr.strip()}")
    _say(f"{len(MUTANTS) - missed} of {len(MUTANTS)} bugs found")
    return 1 if missed else 0


def _hunt(name: str, seed: int | None, seeds: range) -> int:
    """Run seeds with a bug until one fails; 1 if one did."""
    found = [mutant for mutant in MUTANTS if mutant.name == name]
    if not found:
        names = ", ".join(mutant.name for mutant in MUTANTS)
        raise SystemExit(f"--mutant: no bug is called {name!r}; there are: {names}")
    plant(found[0])
    if seed is not None:
        return _one(seed, shrinks=True)
    from .run import first_failure

    failed = first_failure(seeds)
    if failed is None:
        _say(f"not found by {len(seeds)} seeds")
        return 0
    _say(f"seed {failed.plan.seed}: {failed.violations[0].text}")
    return 1


def _one(seed: int, *, shrinks: bool) -> int:
    from .run import run_seed, shrunk
    from .story import story

    result = run_seed(seed)
    if result.violations and shrinks:
        result = shrunk(result)
    _say(story(result))
    _say(f"\n{result.steps} steps in {result.seconds:.1f} virtual seconds, trace {result.digest}")
    return 1 if result.violations else 0


def _many(seeds: range, *, shrinks: bool) -> int:
    from .run import run_seeds, shrunk
    from .story import story

    def show(result: Result) -> None:
        if result.violations:
            _say(story(shrunk(result) if shrinks else result) + "\n")
        elif sys.stderr.isatty():
            sys.stderr.write(f"\rseed {result.plan.seed}")

    began, used = perf_counter(), process_time()
    tally = run_seeds(seeds, show)
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
