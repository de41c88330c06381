"""Pythons for Spark's workers: with the packages of this one, and with tidemill from a wheel or without."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[3]
_BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


def build_wheel(directory: Path) -> Path:
    """Build a wheel of the working tree."""
    source = directory / "source"
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    for name in listed:
        if (ROOT / name).is_file() and not name.startswith(("tests/", "docs/")):
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-c", _BUILD, str(directory)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (wheel,) = directory.glob("*.whl")
    return wheel


def make_python(directory: Path, wheel: Path | None = None, *, without: str = "tidemill") -> Path:
    """The program of an environment with what this one has, but for packages named like `without`."""
    venv.EnvBuilder(symlinks=True).create(directory)
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(directory)}))
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if without not in entry.name and entry.name != "__pycache__" and not (site / entry.name).exists():
            (site / entry.name).symlink_to(entry)
    if wheel is not None:
        with zipfile.ZipFile(wheel) as file:
            file.extractall(site)
    return directory / "bin" / "python"


def link(place: Path, python: Path | None) -> None:
    """Have `place` run another Python from now on; None: have nothing there."""
    place.parent.mkdir(exist_ok=True)
    place.unlink(missing_ok=True)
    if python is not None:
        place.write_text(f'#!/bin/sh\nexec {python} "$@"\n')
        place.chmod(0o755)
