from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tidemill.actors import ActorSystem, SeededSystem

from .rig import ENGINES, Rig


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The options of each engine in turn."""
    return ENGINES[request.param]


@pytest.fixture
def make_rig(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    """Makes rigs, and closes them; actors run in the test's thread unless `system` says otherwise."""
    with ExitStack() as stack:

        def make(seed: int = 1, *, system: ActorSystem | None = None, **options: Any) -> Rig:
            return stack.enter_context(Rig(tmp_path / "scratch", system or SeededSystem(seed), **options))

        yield make
