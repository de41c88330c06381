from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write what comes out into the case files")


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether case files are to be written anew instead of compared with."""
    return bool(request.config.getoption("--rewrite"))
