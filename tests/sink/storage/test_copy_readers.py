"""Copies as Spark reads them, and after it has joined their files (`tests/services/delta` installs it)."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from ..conformance import HISTORY, PAIRS, expected, feed, found, keyed
from . import spark_reader
from .copies import DeltaCopies
from .test_copy import STATES

HOME = Path(__file__).parents[3] / "build/delta"


@pytest.mark.soak
def test_spark_reads_copies_and_joins_their_files_meanwhile(tmp_path):
    if not (HOME / ".installed").exists():
        pytest.skip(f"{HOME} doesn't hold Delta Lake: run tests/services/delta, which says why it can't")
    place = DeltaCopies(tmp_path / "copy")
    history = [keyed(item) for item in HISTORY]
    for end in (11, 17, len(history)):
        feed(place.sink(), history[:end])
        for table in STATES[:1] if end > 11 else [PAIRS]:
            command = [
                HOME / "bin/python",
                spark_reader.__file__,
                place.path / table.full_name,
                HOME / "jars",
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            rows = [tuple(row.values()) for row in json.loads(done.stdout.splitlines()[-1])]
            assert Counter(rows) == expected(history[:end])[table.full_name]
    assert found(place, STATES) == expected(history)
