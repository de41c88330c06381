"""Copies as Spark, DuckDB and Polars read them; Spark joins the files meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import polars as pl
import pytest

from tidemill.testing.sink_conformance import HISTORY, PAIRS, expected, feed, found, keyed

from . import duckdb_reader, spark_reader
from .copies import DeltaCopies, IcebergCopies
from .test_copy import STATES

KEYED = [keyed(item) for item in HISTORY]


def run(*command: object) -> list[tuple[Any, ...]]:
    """Return the rows that a program prints."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [tuple(row) for row in json.loads(done.stdout.splitlines()[-1])]


@pytest.mark.soak
def test_spark_reads_copies_and_joins_their_files_meanwhile(tmp_path, delta_jars):
    place = DeltaCopies(tmp_path / "copy")
    for end in (11, 17, len(KEYED)):
        feed(place.sink(), KEYED[:end])
        for table in STATES[:1] if end > 11 else [PAIRS]:
            path = place.path / table.full_name
            rows = run(sys.executable, spark_reader.__file__, path, Path(delta_jars[0]).parent)
            assert Counter(rows) == expected(KEYED[:end])[table.full_name]
    assert found(place, STATES) == expected(KEYED)


def location(place: IcebergCopies, name: str) -> str:
    return urlsplit(place.table(name).metadata_location).path


@pytest.mark.parametrize("end", [13, len(KEYED)])
def test_duckdb_reads_copies_in_iceberg(tmp_path, duckdb_iceberg, end):
    place = IcebergCopies(tmp_path / "copy")
    feed(place.sink(), KEYED[:end])
    wanted = expected(KEYED[:end])
    for name in ("shop.orders", "shop.pairs"):
        assert Counter(run(duckdb_iceberg, duckdb_reader.__file__, location(place, name))) == wanted[name]


@pytest.mark.parametrize("end", [13, len(KEYED)])
def test_polars_reads_copies_in_iceberg(tmp_path, monkeypatch, end):
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    place = IcebergCopies(tmp_path / "copy")
    feed(place.sink(), KEYED[:end])
    wanted = expected(KEYED[:end])
    for name in ("shop.orders", "shop.pairs"):
        rows = pl.scan_iceberg(location(place, name)).collect().rows()
        assert Counter(rows) == wanted[name]
