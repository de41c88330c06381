"""The source distribution of the tracked and the new files, and its wheel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def build_wheel(directory: Path, *, native: bool = True) -> Path:
    """Build both in an empty directory, from a copy of the sources: the wheel from the source distribution.
    Return the wheel's path."""
    source = directory / "source"
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    for name in listed:
        if (ROOT / name).is_file():
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", directory, source],
        check=True,
        capture_output=True,
        env=os.environ if native else {**os.environ, "CC": "false"},  # the C part of a package is optional
    )
    (wheel,) = directory.glob("*.whl")
    return wheel
