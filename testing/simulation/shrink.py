"""The smallest part of a plan that still fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from .plan import Plan, Step


def shrink(plan: Plan, fails: Callable[[Plan], bool], attempts: int = 60) -> Plan:
    """Leave out steps, faults first, as long as the plan fails; at most `attempts` runs."""
    left = attempts

    def without(gone: Sequence[Step]) -> bool:
        nonlocal plan, left
        smaller = replace(plan, steps=tuple(step for step in plan.steps if step not in gone))
        left -= 1
        if not fails(smaller):
            return False
        plan = smaller
        return True

    for is_fault in (True, False):
        steps = [step for step in plan.steps if step.is_fault is is_fault]
        size = max(1, len(steps) // 2)
        while steps and left > 0:
            kept: list[Step] = []
            for start in range(0, len(steps), size):
                some = steps[start : start + size]
                if left <= 0 or not without(some):
                    kept += some
            if size == 1:
                break
            steps, size = kept, max(1, size // 2)
    return plan
