from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client

from .copied import Copied
from .pythons import build_wheel, make_python
from .standalone import Cluster


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """With tidemill from a wheel: what drivers and workers run on."""
    return make_python(tmp_path_factory.mktemp("python") / "installed", wheel)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Both its hosts run when a test begins, if the one before saw to it."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture
def copied(sql: Client, mariadb: MariaDb) -> Iterator[Copied]:
    made = Copied(sql)
    yield made
    made.drop()
