"""The native decoder where it can't be built, can't be loaded, or is switched off."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidemill.codec.native import library

ROOT = Path(__file__).parents[3]
DECODE = """
from tidemill.codec.native import library
from tidemill.codec.mysql.layout import Layouts
from tidemill.testing.binlog_events import INSERT, INT, rows_event, table_map
layouts = Layouts()
layout = layouts.layout(layouts.number_of(table_map(INT)))
run = layout.block().add(rows_event(INSERT, [[bytes((7, 0, 0, 0))]]), 1, 1)
print(library.description(), len(run), [change.after for change in run.changes()])
"""


def decoded(before: str = "", **environment: str) -> str:
    command = [sys.executable, "-c", before + DECODE]
    environment = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


def test_without_the_module_python_decodes_and_says_why() -> None:
    without = "import sys; sys.modules['tidemill.codec.native._native'] = None\n"
    said = decoded(without)
    assert said.startswith("python (the native decoder isn't used: it can't be loaded: ")
    assert said.endswith(") 1 [(7,)]\n")


@pytest.mark.skipif(library.native is None, reason="the native decoder isn't built")
def test_the_environment_switches_the_native_decoder_off() -> None:
    off = "python (the native decoder isn't used: switched off by TIDEMILL_NATIVE=0) 1 [(7,)]\n"
    assert decoded(TIDEMILL_NATIVE="0") == off
    assert decoded(TIDEMILL_NATIVE="1") == "native 1 [(7,)]\n"


def test_a_build_without_a_compiler_goes_on_without_the_module(tmp_path: Path) -> None:
    command = [sys.executable, "setup.py", "build_ext", "--force"]
    command += ["--build-lib", str(tmp_path / "lib"), "--build-temp", str(tmp_path / "temp")]
    without = {**os.environ, "CC": str(tmp_path / "no-compiler")}
    done = subprocess.run(command, cwd=ROOT, env=without, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 'building extension "tidemill.codec.native._native" failed' in done.stderr
    assert list(tmp_path.rglob("*.so")) == []
