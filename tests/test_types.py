"""Type checkers on what users have: the installed wheel, the examples, and the documents' code."""

from __future__ import annotations

import ast
import builtins
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .wheel import build_wheel

ROOT = Path(__file__).parents[1]
SITE = Path(pytest.__file__).parents[1]
"""Installed packages; the package itself is there as a link to its sources."""
_BLOCK = re.compile(r"^ *```python\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_DECLARATION = re.compile(r"^### `\w+`\n+```python\n.*?```", re.DOTALL | re.MULTILINE)

GIVEN = """\
from collections.abc import Sequence
from typing import Protocol

import tidemill
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader
from tidemill.spark.backfill.backfilled import Backfilled
from tidemill.spark.capture import client
from tidemill.spark.capture.ticket import Ticket
from tidemill.spark.offsets.offset import Offset

class Store(Protocol):
    def try_put(self, items: Sequence[tidemill.Item]) -> bool: ...

acknowledged: int
changes: DataFrame
done: Backfilled
feeds: dict[str, dict[str, object]]
frame: DataFrame
lease: str
offset: Offset
pem: bytes
reader: DataStreamReader
rest: client.Rest
spark: SparkSession
store: Store
ticket: Ticket
token: str
up_to_ts: int

def receive(item: tidemill.Item) -> bool | None: ...
"""
"""Names that a document's code takes from its reader."""
WRONG = "wrong.py"
"""A file with a misspelt name, which is checked with the others: a checker's start takes most of its time."""
MODULES = {"asyncio", "signal", "tidemill"}
"""Modules that a document's code may leave to be imported."""


def documents_code() -> Iterator[tuple[str, str]]:
    """Yield each Python block of the documents with the name in its first line, or one for it.

    Declarations in api.md are none. The code of read-a-lake.md is of other packages, most without types, and
    a test runs it.
    """
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        if path.name == "read-a-lake.md":
            continue
        for number, found in enumerate(_BLOCK.finditer(_DECLARATION.sub("", path.read_text())), 1):
            named = re.match(r"# (\w+)\.py\n", found[1])
            title = f"{path.parent.name}_{path.stem}_{number}".lower().replace("-", "_")
            yield named[1] if named else title, found[1]


UNTYPED = (
    "# mypy: allow-subclassing-any\n"
    "# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, "
    "reportUnknownArgumentType=false, reportUnknownParameterType=false, reportAttributeAccessIssue=false\n"
)
"""For code with pyarrow or Django, which have no types."""
PUBLIC = """\
import tidemill
from tidemill import ChangeDetails
from tidemill.emulator import Tidb

with tidemill.open("tikv://pd:2379", ["shop.*"], arrow=True) as feed:
    for batch in feed.arrow_batches():
        assert_type(batch, tidemill.ArrowBatch)
    for txn in feed:
        assert_type(txn, tidemill.Transaction)
with tidemill.open("tikv://pd:2379", ["shop.*"], arrow=True, ddl=True) as both:
    for found in both.arrow_batches():
        assert_type(found, tidemill.ArrowBatch | tidemill.Ddl)
with tidemill.diff("feed.toml") as compared:
    assert_type(compared, tidemill.Diff)
with Tidb() as cluster:
    assert_type(cluster, Tidb)
assert_type(tidemill.__version__, str)
"""


def free_names(code: str) -> list[str]:
    """Return the names that the code uses and doesn't define, in order."""
    tree = list(ast.walk(ast.parse(code)))
    bound = set(dir(builtins))
    for node in tree:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.Import() | ast.ImportFrom():
                bound |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    return sorted({node.id for node in tree if isinstance(node, ast.Name)} - bound)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a Python that has the wheel, and the code to check in `code`."""
    home = tmp_path_factory.mktemp("types")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home / "env"], check=True)
    (packages,) = (home / "env/lib").glob("python*/site-packages")
    (home / "wheel").mkdir()
    with zipfile.ZipFile(build_wheel(home / "wheel", native=False)) as wheel:
        wheel.extractall(packages)
    (packages / "others.pth").write_text(f"{SITE}\n")
    code = home / "code"
    code.mkdir()
    (code / "given.pyi").write_text(UNTYPED + GIVEN)
    for path in (ROOT / "examples").glob("*.py"):
        write(code / f"example_{path.name}", path.read_text())
    for title, block in documents_code():
        names = free_names(block)
        imports = [f"{'' if name in MODULES else 'from given '}import {name}\n" for name in names]
        write(code / f"{title}.py", "".join([*imports, block]))
    (code / "public.py").write_text(f"from typing import assert_type\n\n{PUBLIC}")
    (home / WRONG).write_text("import tidemill\n\ntidemill.opn\n")
    return home


def write(path: Path, code: str) -> None:
    is_untyped = any(name in code for name in ("pyarrow", "django", "tidemill.spark.capture"))
    path.write_text(UNTYPED + code if is_untyped else code)


@pytest.fixture(scope="module")
def mypy(home: Path) -> list[str]:
    """The lines that mypy says about the code and the wrong one."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context"]
    command += ["--python-executable", home / "env/bin/python", "--cache-dir", os.devnull, "code", WRONG]
    (home / "mypy.ini").write_text("[mypy]\n[mypy-pyarrow.*,django.*]\nignore_missing_imports = True\n")
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


_NOT_OURS = ("reportMissingTypeStubs", "reportUnusedImport", "reportUnusedVariable", "reportUnusedExpression")
"""Rules about packages without types, and about code that only shows something."""


@pytest.fixture(scope="module")
def pyright(home: Path) -> list[str]:
    """The same by pyright."""
    rules = {"include": ["code", WRONG], "typeCheckingMode": "strict", **dict.fromkeys(_NOT_OURS, False)}
    (home / "pyrightconfig.json").write_text(json.dumps(rules))
    command = [SITE.parents[2] / "bin/basedpyright", "--pythonpath", home / "env/bin/python", "--outputjson"]
    done = subprocess.run(
        [*command, "--project", home], cwd=home, capture_output=True, text=True, check=False
    )
    faults = json.loads(done.stdout)["generalDiagnostics"]
    return [
        f"{Path(one['file']).name}:{one['range']['start']['line'] + 1}: {one['message']} ({one.get('rule')})"
        for one in faults
        if one["severity"] == "error"
    ]


def of_wrong(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith(WRONG)]


def test_strict_mypy_finds_no_fault(mypy: list[str]) -> None:
    assert mypy == of_wrong(mypy)


def test_strict_pyright_finds_no_fault(pyright: list[str]) -> None:
    assert pyright == of_wrong(pyright)


def test_a_misspelt_name_is_found(mypy: list[str], pyright: list[str]) -> None:
    assert any('Module has no attribute "opn"' in line for line in of_wrong(mypy))
    assert any('"opn" is not a known attribute' in line for line in of_wrong(pyright))
