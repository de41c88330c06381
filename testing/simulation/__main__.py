"""python -m tidemill.testing.simulation --seeds 300"""

from __future__ import annotations

import argparse
import sys
from time import perf_counter, process_time

from .run import Tally, run_seed, shrunk, story


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tidemill.testing.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300, help="number of seeds to run")
    parser.add_argument("--first", type=int, default=1, help="first of them")
    parser.add_argument("--seed", type=int, help="run this one, and show its story")
    parser.add_argument("--whole", action="store_true", help="show failed seeds as they are, not shrunk")
    given = parser.parse_args()
    if given.seed is not None:
        return _one(given.seed, shrinks=not given.whole)
    return _many(range(given.first, given.first + given.seeds), shrinks=not given.whole)


def _one(seed: int, *, shrinks: bool) -> int:
    result = run_seed(seed)
    if result.violations and shrinks:
        result = shrunk(result)
    _say(story(result))
    _say(f"\n{result.steps} steps in {result.seconds:.1f} virtual seconds, trace {result.digest}")
    return 1 if result.violations else 0


def _many(seeds: range, *, shrinks: bool) -> int:
    tally = Tally()
    began, used = perf_counter(), process_time()
    for seed in seeds:
        result = run_seed(seed)
        tally.add(result)
        if result.violations:
            _say(story(shrunk(result) if shrinks else result) + "\n")
        elif sys.stderr.isatty():
            sys.stderr.write(f"\rseed {seed}")
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
