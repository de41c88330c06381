"""Workers with another Python than the driver, or without what tasks need: one sentence, and nothing done."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tidemill.testing.progress import ended

from .copied import Copied
from .pythons import make_python
from .runs import NAME, configure, refused, started
from .standalone import Cluster

pytestmark = pytest.mark.soak

Refused = Callable[[Path | None], str]
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
ADVICE = f"set PYSPARK_PYTHON to a Python {HERE} that every worker has there, with tidemill installed"


@pytest.fixture
def said_of(cluster: Cluster, python: Path, copied: Copied, tmp_path: Path) -> Refused:
    return partial(refused, cluster, python, copied=copied, directory=tmp_path)


def test_without_a_package_that_it_needs(said_of: Refused, wheel: Path, tmp_path: Path) -> None:
    python = make_python(tmp_path / "python", wheel, without="pyarrow")
    assert said_of(python) == (
        "the workers' Python has no pyarrow: pip install 'tidemill[spark]' on each of them"
    )


def test_without_that_python(said_of: Refused) -> None:
    assert said_of(None) == f"a worker can't run {NAME}: error=2, No such file or directory: {ADVICE}"


def test_with_another_tidemill(
    cluster: Cluster, python: Path, copied: Copied, wheel: Path, tmp_path: Path
) -> None:
    with started(cluster, python, configure(tmp_path, copied), "--until", "now") as loading:
        assert ended(loading.process) == 0, loading.log()
    copied.transaction("INSERT INTO {} VALUES (7, 'seventh')")
    other = make_python(tmp_path / "python", wheel)
    (package,) = (tmp_path / "python").glob("lib/*/site-packages/tidemill/__init__.py")
    package.write_text(package.read_text().replace('\n__version__ = "', '\n__version__ = "99.', 1))
    said = refused(cluster, python, other, copied, tmp_path)
    assert re.fullmatch(
        rf"the driver runs tidemill \S+ on Python {HERE}, this worker tidemill 99\.\S+ on Python {HERE}: "
        "install the same on both",
        said,
    )


def pythons() -> dict[tuple[int, ...], Path]:
    """The oldest and the newest of this machine that aren't as this one is, by their version."""
    root = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    places = [*root.glob("versions/3*/bin/python3"), *Path("/usr/bin").glob("python3")]
    program = "import sys; print(*sys.version_info[:2])"
    said = {
        place: subprocess.run([place, "-c", program], capture_output=True, check=True).stdout
        for place in places
    }
    found = {tuple(map(int, text.split())): place for place, text in said.items()}
    found.pop(sys.version_info[:2], None)
    return {version: found[version] for version in (min(found), max(found))} if found else {}


def test_with_another_python(said_of: Refused) -> None:
    if not (others := pythons()):
        pytest.skip("this machine has no other Python")
    for (major, minor), place in others.items():
        is_too_old = (major, minor) < (3, 10)  # for PySpark itself
        other = f"the workers have another Python than the driver: {major}.{minor}, and not {HERE}: "
        said = said_of(place)
        assert said.startswith("the workers' Python doesn't start (" if is_too_old else other)
        assert said.endswith(ADVICE)


def test_no_worker_at_all(python: Path, copied: Copied, tmp_path: Path) -> None:
    with (
        Cluster(tmp_path / "cluster", hosts=0) as cluster,
        started(cluster, python, configure(tmp_path, copied), "--until", "now") as driver,
    ):
        driver.until(lambda: "has started no executor: waiting for workers with a free core" in driver.log())
        assert copied.counted(copied.copy) == dict.fromkeys(copied.tables, 0)
