"""Kinds of sources and sinks from installed packages: the example plugin, and packages that are broken."""

from __future__ import annotations

import re
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tidemill.config import Registry
from tidemill.emulator.sql.sql import Tidb
from tidemill.sink.kind import SinkKind
from tidemill.sink.registry import GROUP, SINKS

from .installed import ROOT, install, run

Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that has the example plugin as pip installs it."""
    return install("plugin", tmp_path_factory.mktemp("plugin"))


@pytest.fixture
def tidemill(installed: Path, tmp_path: Path) -> Call:
    """The command line with the plugin installed."""

    def call(*arguments: object, path: Path = installed) -> subprocess.CompletedProcess[str]:
        return run(path, "tidemill.cli", *arguments, cwd=tmp_path)

    return call


@pytest.fixture
def tidb() -> Iterator[Tidb]:
    with Tidb(stores=1) as made:
        made.execute("create database shop")
        made.execute("create table shop.item (id bigint primary key, name varchar(40))")
        yield made


def test_rows_go_from_a_cluster_through_the_plugin_into_sqlite(
    tidb: Tidb, tidemill: Call, tmp_path: Path
) -> None:
    lines, copy = tmp_path / "rows.csv", tmp_path / "copy.db"
    first = ["--source", f"tikv://{tidb.pd_address}", "--sink", f"csv://{lines}", "--data-dir", "first"]
    second = ["--source", f"csv://{lines}", "--sink", f"sqlite:///{copy}", "--data-dir", "second"]

    def copied() -> list[tuple[int, str]]:
        for feed in (first, second):
            done = tidemill("run", *feed, "--table", "shop.*", "--until", "now")
            assert done.returncode == 0, done.stderr
        with closing(sqlite3.connect(copy)) as connection:
            return list(connection.execute('SELECT id, name FROM "shop.item" ORDER BY id'))

    with tidb.transaction() as txn:
        for number in (1, 2, 3):
            txn.insert("shop.item", {"id": number, "name": f'item "{number}", new'})
    assert copied() == [(number, f'item "{number}", new') for number in (1, 2, 3)]
    with tidb.transaction() as txn:
        txn.update("shop.item", 1, {"name": "sold\nout"})
        txn.delete("shop.item", 2)
        txn.insert("shop.item", {"id": 4, "name": None})
    assert copied() == [(1, "sold\nout"), (3, 'item "3", new'), (4, None)]
    before = lines.read_bytes()
    assert copied() == [(1, "sold\nout"), (3, 'item "3", new'), (4, None)]
    assert before == lines.read_bytes()[: len(before)]

    said = tidemill("check", *first, "--table", "shop.*").stdout
    assert f"ok      sink sink-1: {lines} is there\n" in said
    assert "ok      sink sink-1: goes on from " in said
    said = tidemill("check", *second, "--table", "shop.*").stdout
    assert "ok      source: follows shop.item\n" in said


def test_check_warns_of_what_only_the_local_engine_takes(tidemill: Call, tmp_path: Path) -> None:
    lines = tmp_path / "rows.csv"
    lines.touch()
    config = tmp_path / "feed.toml"
    config.write_text(
        f'[source]\nurl = "csv://{lines}"\ntables = ["a.*"]\n[[sink]]\nurl = "csv://{tmp_path}/copy.csv"\n'
    )
    local = tidemill("check", config).stdout
    config.write_text(config.read_text() + "[spark]\npartitions = 2\n")
    on_spark = tidemill("check", config).stdout
    assert on_spark.removeprefix(local).splitlines() == [
        "warning source: source.url: Spark can't read csv, only mysql, tikv: use the local engine",
        "warning sink sink-1: Spark can't write to csv: its tasks would write to one file at once; use "
        "directory:///rows",
    ]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--source", "csv:///rows.csv", "--engine", "spark", "--sink", "sqlite:///x.db"],
            "Spark can't read csv, only mysql, tikv: use the local engine",
        ),
        (
            ["--source", "tikv://pd:2379", "--engine", "spark", "--sink", "csv:///x.csv"],
            "Spark can't write to csv: its tasks would write to one file at once; use directory:///rows",
        ),
        (["--source", "csv://", "--sink", "csv:///x.csv"], "source.url: 'csv://' names no file; for "),
        (
            ["--source", "cvs:///x.csv", "--sink", "csv:///x.csv"],
            "source.url: no source 'cvs'; accepted: mysql, mariadb, tikv, pump, binlog, csv",
        ),
        (
            ["--source", "tikv://pd:2379", "--sink", "cvs:///x.csv"],
            "no sink writes to 'cvs'; accepted: sqlite:///file, mysql://user@host/, mariadb://user@host/, "
            "postgresql://user@host/database, duckdb:///file, kafka://broker:9092/{schema}_{table}, "
            "file:///rows.ndjson, parquet:///directory, s3://bucket/prefix, directory:///var/rows, "
            "delta:///var/lake, delta+s3://bucket/prefix, iceberg+sql:///var/lake, "
            "iceberg+rest://host:8181/path?location=s3://bucket/prefix, "
            "csv:///rows.csv "
            "or a function",
        ),
    ],
)
def test_a_mistake_is_answered_with_what_the_plugin_accepts(
    tidemill: Call, arguments: list[str], sentence: str
) -> None:
    done = tidemill("run", *arguments, "--table", "shop.*")
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Installs a package whose entry point of sinks is the given object."""

    def install(value: str) -> Path:
        folder = tmp_path / "site"
        about = folder / "broken_sink-1.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-sink\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[{GROUP}]\nwrong = {value}\n")
        monkeypatch.syspath_prepend(folder)
        return folder

    return install


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("nowhere_at_all:KIND", "can't be loaded: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("tidemill.sink.registry:GROUP", "can't be used: tidemill.sink.registry:GROUP is no SinkKind"),
        ("tidemill.sink.kafka.kinds:KAFKA", "can't be used: kafka: is taken by another"),
    ],
)
def test_a_broken_package_is_named_and_others_can_be_used(
    package: Callable[[str], Path], value: str, problem: str
) -> None:
    package(value)
    registry = Registry(GROUP, SinkKind, list(SINKS)[:5])
    sqlite = registry.find("sqlite")
    assert sqlite is not None
    assert registry.problems == ""  # nothing but what is built in was asked for
    assert registry.find("wrong") is None
    assert registry.problems == f"; broken-sink ({GROUP}: wrong) {problem}"
    assert registry.find("sqlite") is sqlite


def test_the_command_line_names_a_broken_package(tidemill: Call, package: Callable[[str], Path]) -> None:
    folder = package("nowhere_at_all:KIND")
    done = tidemill(
        "run", "--source", "tikv://pd:2379", "--sink", "wrong:///x", "--table", "a.*", path=folder
    )
    assert done.returncode == 2
    assert "broken-sink (tidemill.sinks: wrong) can't be loaded" in done.stderr


WRONG = '''
import pytest
from test_csv_sink import CsvPlace, TestCsv
from tidemill_csv.sink import CsvSink


class Untruncated(CsvSink):
    """Leaves what a crash left after the checkpoint."""

    def _go_on(self, length):
        super()._go_on(self._path.stat().st_size if self._path.exists() else length)


class Hasty(CsvSink):
    """Tells a checkpoint that isn't durable."""

    def flush(self):
        return self._reached or self._durable


class Lenient(CsvSink):
    """Writes nothing of what it can't hold."""

    def _lines(self, item):
        try:
            return super()._lines(item)
        except Exception:
            return []


class Leaking(CsvSink):
    opened = []

    def close(self):
        self.opened.append(self._file)
        self._file = None


@pytest.mark.parametrize("kind", [Untruncated, Hasty, Lenient, Leaking])
class TestWrong(TestCsv):
    @pytest.fixture
    def place(self, tmp_path, kind):
        place = CsvPlace(tmp_path)
        place.sink = lambda: kind("csv", place.path, place.store)
        return place
'''


def test_the_suite_passes_on_the_plugin_and_finds_what_is_wrong(installed: Path, tmp_path: Path) -> None:
    suite = tmp_path / "test_csv_sink.py"
    suite.write_bytes((ROOT / "examples/plugin/tests/test_csv_sink.py").read_bytes())
    done = run(installed, "pytest", "-q", suite, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    (tmp_path / "test_wrong.py").write_text(WRONG)
    done = run(installed, "pytest", "-q", "-rf", "test_wrong.py", "-k", "Wrong", cwd=tmp_path)
    failed = set(re.findall(r"^FAILED \S+::(\w+)\[(?:.*-)?(\w+)\]", done.stdout, re.MULTILINE))
    for name, kind in [
        ("test_dying_over_and_over_changes_nothing", "Untruncated"),
        ("test_what_was_flushed_is_where_the_next_one_begins", "Hasty"),
        ("test_what_the_target_can_not_hold_is_refused_before_anything_is_applied", "Lenient"),
        ("test_closing_leaves_no_thread_and_no_file_open", "Leaking"),
    ]:
        assert (name, kind) in failed, done.stdout
