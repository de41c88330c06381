"""Stories of simulated worlds, for people."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ...events import LOGICAL_BITS, MAX_LOGICAL
from .plan import Plan
from .scheduler import EPOCH

if TYPE_CHECKING:
    from .world import Result

_TS: Final = re.compile(r"\b\d{18}\b")
_NUMBERED: Final = re.compile(r"\b(store|sort)(?:-\d+)+")


def readable(text: str) -> str:
    """Return the text with timestamps of PD as virtual time and their logical part, such as 4.633+1, and
    without the process's numbers of files."""
    return _TS.sub(lambda match: _short(int(match[0])), _NUMBERED.sub(r"\1", text))


def _short(ts: int) -> str:
    return f"{(ts >> LOGICAL_BITS) / 1000 - EPOCH:.3f}+{ts & MAX_LOGICAL}"


def story(result: Result) -> str:
    lines = [f"seed {result.plan.seed}: {_world(result.plan)}", *result.story, ""]
    lines += [f"{one.time:9.3f}  WRONG       {readable(one.text)}" for one in result.violations]
    return "\n".join(lines)


def _world(plan: Plan) -> str:
    sorter = ", ".join(f"{name} {value}" for name, value in plan.sorter.items())
    return (
        f"{plan.tables} tables with {plan.rows} transactions in {plan.regions + 1} regions, "
        f"latency {1000 * plan.latency_seconds:g} ms, of the target "
        f"{1000 * plan.target_latency_seconds:g} ms, {plan.pd_members} PD, {plan.commit_mode}, "
        f"slow: {plan.slow or 'none'}, sorter: {sorter}"
    )
