"""An explanation begins with the cause of a fault and with what to do, and blames nobody else."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import monotonic

import pytest

from tidemill.engine.progress import explanation
from tidemill.testing.faults import FAULTS, Fault, Place
from tidemill.testing.progress import eventually, slowdown

SOON_SECONDS = 10.0


@pytest.fixture(scope="module")
def seconds() -> Iterator[dict[str, float]]:
    """Time until each fault was explained; the figure is printed at the end."""
    found: dict[str, float] = {}
    yield found
    soon = sum(one < SOON_SECONDS for one in found.values())
    said = f"\n{soon} of {len(found)} faults explained within {SOON_SECONDS:g} s, the slowest after "
    print(f"{said}{max(found.values(), default=0.0):.1f} s", file=sys.__stderr__)


@pytest.mark.parametrize(
    "fault",
    [pytest.param(one, id=one.name, marks=[] if one.quick else [pytest.mark.soak]) for one in FAULTS],
)
def test_the_first_line_names_the_cause(
    fault: Fault, tmp_path: Path, mariadb_template: Path, seconds: dict[str, float]
) -> None:
    seen: list[str] = []
    with ExitStack() as stack:
        place = Place(tmp_path, mariadb_template, stack)
        fault.make(place)
        began = monotonic()

        def look() -> bool:
            seen.append(explanation(place.feed.status(), place.feed.explain())[0])
            return fault.is_named(seen[-1])

        eventually(look, sign=lambda: re.sub(r"[\d.,]+", "", seen[-1] if seen else ""))
        seconds[fault.name] = (monotonic() - began) / slowdown()
    assert [line for line in seen if fault.is_wrong(line)] == []


def test_there_are_faults_of_every_kind() -> None:
    assert len(FAULTS) >= 30
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
