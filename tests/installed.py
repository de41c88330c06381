"""Example packages as pip installs them, and commands that see them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tidemill.testing.progress import completed

ROOT = Path(__file__).parents[1]


def install(example: str, directory: Path) -> Path:
    """Install a folder of examples/; return a directory for PYTHONPATH."""
    source, target = directory / "source", directory / "installed"
    shutil.copytree(ROOT / "examples" / example, source)
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", "-q", *offline, "--target", target, source]
    completed(command, 300).check_returncode()
    return target


def run(
    package: Path, module: str, *arguments: object, cwd: Path, seconds: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run a Python module with a package installed."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return completed(command, seconds, env={**os.environ, "PYTHONPATH": str(package)}, cwd=cwd)
