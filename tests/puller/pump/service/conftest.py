from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tidemill.actors import ManualClock

from .node import RunningDrainer


@pytest.fixture
def registry_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'registry.db'}"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def drainer(registry_url: str, clock: ManualClock) -> Iterator[Callable[..., RunningDrainer]]:
    """Makes drainers and starts them; they are stopped after the test."""
    made: list[RunningDrainer] = []

    def make(**options: Any) -> RunningDrainer:
        made.append(RunningDrainer(clock=clock, registry=registry_url, **options))
        return made[-1].start()

    yield make
    for each in made:
        each.drainer.stop()
