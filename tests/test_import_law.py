"""The allowed imports. `actors`, `store`, `codec` and `config` are leaves; stages don't import each other."""

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

VOCABULARY = {"events", "errors", "failpoint", "lazy"}
LEAVES = {
    "events": {"errors"},
    "actors": {"lazy"},
    "store": {"errors", "failpoint"},
    "codec": {"events", "errors"},
    "config": {"errors", "events"},
    "dialects": {"codec", "config", "events", "errors", "failpoint", "lazy"},
    "snapshot": {"codec", "dialects", "events", "errors"},
    "chain": {"config", "errors", "events"},
    "timeline": {"errors"},
}
"""Folders that know no stage: actors and stores know no change data, and a chain is what `sink` and
`sharding` share, which don't know each other. A snapshot is what loads, Spark and a comparison read."""
STAGES = {"puller", "sorter", "mounter", "sharding", "sink"}
ABOVE = {
    "sources": {"engine"},
    "engine": {"sources"},
    "compare": {"engine", "sources"},
    "embedded": {"engine", "sources"},
    "emulator": set(),
    "testing": {"emulator", "embedded", "engine", "sources"},
    "spark": {"engine", "sources", "__version__"},
    "server": {"compare", "embedded", "engine", "__version__"},
    "client": {"engine", "server"},
    "cli": {"client", "compare", "engine", "server", "spark", "benchmarks", "__version__"},
    "benchmarks": {
        "client",
        "compare",
        "engine",
        "sources",
        "embedded",
        "server",
        "spark",
        "cli",
        "emulator",
        "testing",
    },
}
"""Folders that put the stages together, and what else each may import; no stage imports them."""
FOREIGN = {
    "events": {"msgspec"},
    "actors": {"pykka"},
    "store": {"rocksdict", "msgspec"},
    "codec": {"msgspec", "google", "numpy", "pyarrow"},
    "config": {"msgspec"},
    "chain": {"msgspec"},
    "dialects": {"msgspec", "pymysql", "psycopg", "duckdb", "pyarrow"},
    "snapshot": {"msgspec", "pymysql"},
    "timeline": {"msgspec"},
    "sorter": {"msgspec"},
    "mounter": {"msgspec"},
    "sharding": {"msgspec"},
    "puller": {"msgspec", "pymysql", "pymysqlreplication", "grpc", "zstandard", "etcd3", "prometheus_client"},
    "emulator": {"msgspec", "grpc"},
    "client": {"msgspec"},
    "server": {"msgspec", "starlette", "tomli_w", "uvicorn"},
    "sink": {
        "msgspec",
        "pymysql",
        "psycopg",
        "pyarrow",
        "numpy",
        "duckdb",
        "confluent_kafka",
        "deltalake",
        "obstore",
        "pyroaring",
        "pyiceberg",
        "pydantic",  # the errors of these three are pyiceberg's
        "requests",
        "sqlalchemy",
    },
}

WITHIN = {
    "chain": {"selection": set(), "transform": {"selection"}},
    "codec": {
        "mysql": {"native"},
        "native": set(),
        "proto": {"native"},
        "tidb": {"mysql", "native", "proto"},
    },
    "dialects": {"mysql": set(), "postgres": set(), "sqlite": set(), "duckdb": set()},
    "snapshot": {"mysql": set(), "tikv": set()},
    "puller": {"grpc": set(), "mysql": set(), "tikv": {"grpc"}, "pump": {"grpc", "tikv"}},
    "mounter": {"mysql": set(), "tidb": set()},
    "sorter": {"db": set(), "unified": set()},
    "sink": {
        "dm": set(),
        "drainer": set(),
        "encoding": set(),
        "files": {"encoding"},
        "kafka": {"encoding", "files"},
        "relay": set(),
        "sql": {"dm", "drainer"},
    },
}
"""Subfolders, and which of the same folder each may import; modules beside them put them together."""
_NAMED = re.compile(r"\btidemill\.(\w+)\.\w")


def allowed(part: str) -> set[str]:
    """Return the parts of this package that a folder, or a module of the root, may import."""
    if part in LEAVES:
        return LEAVES[part] | {part}
    if part in STAGES:
        return VOCABULARY | set(LEAVES) | {part}
    if part == "emulator":  # the emulated MariaDB alters and shows its tables as the catalog and dialect do
        return VOCABULARY | {"actors", "chain", "codec", "config", "dialects", "mounter", part}
    if part in ABOVE:
        return VOCABULARY | set(LEAVES) | STAGES | ABOVE[part] | {part}
    if part == "__init__":
        stages = {"puller", "sharding", "sink", "sorter"}
        return VOCABULARY | stages | {"chain", "compare", "embedded", "engine", "timeline"}
    return VOCABULARY | {part}


class Module:
    """A module, as far as the rules look at it: found in one walk."""

    def __init__(self, path: Path) -> None:
        self.name = str(path.relative_to(ROOT))
        self.part = path.relative_to(ROOT).parts[0].removesuffix(".py")
        self.imports: list[tuple[str, bool]] = []
        """(first name inside tidemill, True) and (foreign top-level name, False), for each import."""
        self.inside: list[list[str]] = []
        """The parts of the names inside tidemill that it imports."""
        self.texts: list[tuple[int, str]] = []
        """Lines and texts that name a module of tidemill."""
        self.asked: set[str] = set()
        """Attributes that it asks for by name."""
        self.reads_time = False
        self.stand_ins: list[str] = []
        """Callbacks set after a construction, and classes that answer for any name."""
        package = path.relative_to(ROOT).parent.parts
        for node in ast.walk(ast.parse(path.read_text())):
            self._note(node, package)

    def _note(self, node: ast.AST, package: tuple[str, ...]) -> None:
        match node:
            case ast.ImportFrom(module, names, level) if level:
                base = [*package[: len(package) - level + 1], *filter(None, (module or "").split("."))]
                self.imports += [(base[0], True)] if base else [(alias.name, True) for alias in names]
                self.inside += [[*base, alias.name] for alias in names]
            case ast.ImportFrom(module):
                self.imports.append((module.partition(".")[0], False))
                self.reads_time |= module == "time"
            case ast.Import(names):
                self.imports += [(alias.name.partition(".")[0], False) for alias in names]
                self.reads_time |= any(alias.name == "time" for alias in names)
            case ast.Constant(str(text)):
                self.texts += [(node.lineno, name) for name in _NAMED.findall(text)]
            case ast.Call(ast.Name("getattr"), [_, ast.Constant(str(name)), _]) | ast.Call(
                ast.Name("hasattr"), [_, ast.Constant(str(name))]
            ):
                self.asked.add(name)
            case ast.Assign(targets=[ast.Attribute(value, name)]) if name.startswith("on_"):
                if not (isinstance(value, ast.Name) and value.id == "self"):
                    self.stand_ins.append(f"{self.name}: {ast.unparse(node)}")
            case ast.ClassDef(body=body):
                names = [one.name for one in body if isinstance(one, ast.FunctionDef)]
                self.stand_ins += [f"{self.name}: {node.name}" for name in names if name == "__getattr__"]


module = cache(Module)


def modules() -> list[Path]:
    outside = {"tests", "examples", "build", "docs", "setup.py"}
    return [
        path
        for path in sorted(ROOT.rglob("*.py"))
        if not (parts := path.relative_to(ROOT).parts)[0].startswith(".") and parts[0] not in outside
    ]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_what_the_law_allows(path):
    part = module(path).part
    broken = []
    for name, inside in module(path).imports:
        if inside and name not in allowed(part):
            broken.append(f"{part} must not import {name}")
        if not inside and name == "tidemill":
            broken.append("inside the package imports are relative")
        if not inside and part in FOREIGN and name not in FOREIGN[part] | sys.stdlib_module_names:
            broken.append(f"{part} must not depend on {name}")
    assert broken == []


@pytest.mark.parametrize("folder", WITHIN)
def test_a_subfolder_imports_only_what_the_law_allows(folder):
    broken = set()
    for path in (path for path in modules() if path.relative_to(ROOT).parts[0] == folder):
        parts = path.relative_to(ROOT).parts
        for name in module(path).inside:
            if len(parts) > 2 and name[0] == folder and name[1] in set(WITHIN[folder]) - {parts[1]}:
                broken |= {("/".join(parts), name[1])} if name[1] not in WITHIN[folder][parts[1]] else set()
    assert broken == set()


@pytest.mark.parametrize("folder", WITHIN)
def test_the_law_of_subfolders_covers_each(folder):
    assert {path.parent.name for path in (ROOT / folder).glob("*/__init__.py")} == set(WITHIN[folder])


def test_no_two_folders_import_each_other():
    by_folder: dict[str, set[str]] = {}
    for path in modules():
        parts = path.relative_to(ROOT).parts
        if len(parts) > 1:
            by_folder.setdefault(parts[0], set()).update(name[0] for name in module(path).inside)
    both = {
        (one, other)
        for one, others in by_folder.items()
        for other in others
        if one < other and one in by_folder.get(other, ())
    }
    assert both == set()


def test_no_string_names_a_module_of_a_higher_layer():
    broken = [
        f"{one.name}:{line}: {name}"
        for one in map(module, modules())
        for line, name in one.texts
        if (ROOT / name).is_dir() and name not in allowed(one.part)
    ]
    assert broken == []


def test_only_the_clock_reads_the_time():
    own = ("actors/clock.py", "benchmarks/", "testing/")
    found = [one.name for one in map(module, modules()) if one.reads_time and not one.name.startswith(own)]
    assert found == []


def test_every_stage_is_covered_by_the_law():
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert folders == set(LEAVES) | STAGES | set(ABOVE)


ASKED_BY_NAME = {
    "actors/ref.py": {"actor"},  # of pykka's proxies
    "codec/mysql/tls.py": {"original_exception"},  # of pymysql's errors
    "codec/native/json_texts.py": {"scale", "unit"},  # of some of Arrow's types
    "dialects/sqlite/read.py": {"sqlite_errorcode"},  # of some of SQLite's errors
    "dialects/sqlite/session.py": {"sqlite_errorcode"},
    "spark/read/filters.py": {"attribute"},  # of some of Spark's filters
    "spark/run/errors.py": {"cause", "__cause__"},  # of Spark's errors
    "spark/snapshot/row_filter.py": {"attribute"},
}
"""Attributes of others' objects that may be missing, by module."""


def test_abilities_are_traits_and_not_asked_by_name():
    assert {one.name: one.asked for one in map(module, modules()) if one.asked} == ASKED_BY_NAME


def test_a_callback_is_an_argument_and_no_object_stands_in_for_another():
    """No `thing.on_event = callback` after the construction, and no class that answers for any name."""
    assert [found for one in map(module, modules()) for found in one.stand_ins] == []
