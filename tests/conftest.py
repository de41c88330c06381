from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# Hypothesis' own time limits (0.2 s an example, and how long making examples takes) fail on a busy machine.
settings.register_profile("progress", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("progress")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write what comes out into the case files")
    parser.addoption("--seed", type=int, help="of tests that run many seeds, only this one")


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether case files are to be written anew instead of compared with."""
    return bool(request.config.getoption("--rewrite"))
