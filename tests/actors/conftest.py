from __future__ import annotations

from collections.abc import Iterator

import pytest

from tidemill.actors import ActorSystem, SeededSystem


@pytest.fixture(params=[1, 2, 3])
def seeded(request: pytest.FixtureRequest) -> Iterator[SeededSystem]:
    """Actors in the test's own thread, in three different orders."""
    system = SeededSystem(request.param)
    yield system
    system.stop(timeout=0.0)


@pytest.fixture
def threads() -> Iterator[ActorSystem]:
    """Actors on two real threads."""
    with ActorSystem("test", workers=2) as system:
        yield system
