"""Waits of a pipeline, as they are told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tidemill.engine.coordinator import Course
from tidemill.engine.waits import BUSY_SECONDS, waits_of

NOW, REST = 100.0, 3.0


def waits(turn_seconds: float) -> list[str]:
    """Return the waits that are told while the turn of a source's actor has lasted so far."""
    actor = SimpleNamespace(name="puller", turn_since=NOW - turn_seconds)
    busy: Any = SimpleNamespace(statistics=lambda: SimpleNamespace(actors=[actor]), waiting=list)
    idle: Any = SimpleNamespace(waiting=list)
    source: Any = SimpleNamespace(address="db:3306", rest_seconds=REST, waits=list)
    sorter: Any = SimpleNamespace(explain=list)
    course: Course = SimpleNamespace(retries={})  # type: ignore[assignment]
    found = waits_of(NOW, course, source, sorter, [], compute=idle, blocking=busy)
    return [f"{wait.stage}: {wait.kind} of {wait.on}" for wait in found]


@pytest.mark.parametrize(
    ("turn_seconds", "told"),
    [(REST + BUSY_SECONDS - 0.1, []), (REST + BUSY_SECONDS + 0.1, ["source: answer of db:3306"])],
)
def test_an_idle_source_is_not_blamed_for_its_rest(turn_seconds: float, told: list[str]) -> None:
    assert waits(turn_seconds) == told
