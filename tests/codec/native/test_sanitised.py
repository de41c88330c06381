"""The native decoder with the sanitisers of addresses and of undefined behaviour."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tidemill.codec.native import library

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "codec/native/source"


def built(folder: Path) -> Path:
    """Build the extension module with sanitisers."""
    module = folder / "_native.so"
    command = [
        "gcc", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fPIC", "-shared",
        f"-I{sysconfig.get_path('include')}", *map(str, sorted(SOURCE.glob("*.c"))), "-o", str(module),
    ]  # fmt: skip
    subprocess.run(command, check=True)
    return module


@pytest.mark.skipif(library.native is None, reason="there is no native decoder")
def test_the_fuzzing_itself() -> None:
    """Two seeds, with the module that is installed."""
    fuzz = [sys.executable, "-m", "tests.codec.native.fuzz", str(library.native.__file__), "0", "2"]
    done = subprocess.run(
        fuzz, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-5000:]


@pytest.mark.soak
@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_no_row_reads_or_writes_outside_of_its_bytes(tmp_path: Path) -> None:
    module = built(tmp_path)
    libraries = [
        subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout
        for name in ("libasan.so", "libubsan.so")
    ]
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(path.strip() for path in libraries),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python itself keeps what it has at its end
        "PYTHONMALLOC": "malloc",  # so that bytes beyond an object are seen
        "PYTHONPATH": str(ROOT),
    }
    seeds = os.environ.get("TIDEMILL_FUZZ_SEEDS", "1000")
    fuzz = [sys.executable, "-m", "tests.codec.native.fuzz", str(module), "0", seeds]
    done = subprocess.run(fuzz, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-5000:]
