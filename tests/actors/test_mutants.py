"""The tests are tested: each break of the code on purpose is noticed by those that should."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

import tidemill.actors
from tidemill.testing.progress import Stalled, completed

from .mutants import MUTANTS, Mutant

TESTS = Path(__file__).parent
ACTORS = Path(tidemill.actors.__file__).parent


def copy_package(to: Path) -> Path:
    """The package with nothing but actors, their tests and the settings of pytest; returns actors."""
    package = to / "tidemill"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ACTORS, package / "actors", ignore=ignore)
    shutil.copy(ACTORS.parent / "__init__.py", package)
    shutil.copytree(TESTS, to / "tests" / "actors", ignore=ignore)
    shutil.copy(ACTORS.parent / "pyproject.toml", to)
    return package / "actors"


def run_tests(folder: Path, names: tuple[str, ...]) -> str:
    """Empty if they pass, else what failed; a run that does not end in two minutes has failed."""
    files = [f"tests/actors/test_{name}.py" for name in names]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=no", "-p", "no:xdist", *files]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = completed(command, cwd=folder, env=environment)
    except Stalled:
        return "hangs"
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout if done.returncode else ""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.breaks)
def test_a_mutant_changes_exactly_one_place(mutant: Mutant) -> None:
    assert (ACTORS / mutant.file).read_text().count(mutant.old) == 1
    assert all((TESTS / f"test_{name}.py").exists() for name in mutant.tests)


@pytest.mark.soak
def test_the_copied_package_passes_unchanged(tmp_path: Path) -> None:
    copy_package(tmp_path)
    names = sorted({name for mutant in MUTANTS for name in mutant.tests})
    assert run_tests(tmp_path, tuple(names)) == ""


@pytest.mark.soak
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.breaks)
def test_the_tests_notice_if_this_no_longer_holds(mutant: Mutant, tmp_path: Path) -> None:
    file = copy_package(tmp_path) / mutant.file
    file.write_text(file.read_text().replace(mutant.old, mutant.new))
    assert run_tests(tmp_path, mutant.tests) != ""
