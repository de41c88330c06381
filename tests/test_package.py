"""The root folder is the package: one copy of each module, and a wheel that holds just the package."""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import version
from pathlib import Path

import tidemill
import tidemill.events

from .wheel import build_wheel

ROOT = Path(__file__).parents[1]
OUTSIDE = {"tests", "examples", "build", "docs", "setup.py"}


def package_files() -> set[str]:
    return {
        f"tidemill/{path.relative_to(ROOT)}"
        for path in ROOT.rglob("*.py")
        if not (parts := path.relative_to(ROOT).parts)[0].startswith(".") and parts[0] not in OUTSIDE
    }


def protocol_files() -> set[str]:
    folder = ROOT / "codec/proto"
    files = [*folder.glob("*.proto"), *folder.glob("*.pyi"), *folder.glob("*.binpb")]
    return {f"tidemill/{path.relative_to(ROOT)}" for path in files}


def test_there_is_one_copy_of_each_module():
    # pytest itself imports the root's __init__ under the folder's name; being lazy, that brings nothing.
    homes: dict[str, list[str]] = {}
    ours = {str(ROOT / name.partition("/")[2]) for name in package_files()} - {str(ROOT / "__init__.py")}
    for name, module in list(sys.modules.items()):
        if (file := getattr(module, "__file__", None)) in ours:
            homes.setdefault(file, []).append(name)
    twice = {file: names for file, names in homes.items() if len(names) > 1}
    assert twice == {}


def test_the_root_imports_no_stage_by_itself():
    code = (
        "import sys, tidemill; "
        "print(sorted(n for n in sys.modules if n.startswith('tidemill.')), tidemill.Transaction.__name__)"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output == "[] Transaction\n"


def test_the_command_line_starts_without_what_only_feeds_need():
    heavy = "'grpc', 'google.protobuf', 'rocksdict', 'pymysql', 'pyarrow', 'pyspark'"
    code = f"import sys, tidemill.cli; print([name for name in ({heavy}) if name in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output == "[]\n"


def test_a_feeds_options_are_read_without_the_drivers_of_its_sinks():
    heavy = "'pymysql', 'pyarrow', 'http.client'"
    code = f"import sys, tidemill.engine.options; print([name for name in ({heavy}) if name in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output == "[]\n"


def test_every_public_name_resolves():
    assert [name for name in tidemill.__all__ if not hasattr(tidemill, name)] == []


def test_the_wheel_holds_the_folders_and_nothing_else(tmp_path):
    wheel = build_wheel(tmp_path)
    names = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    native = {name for name in names if name.startswith("tidemill/codec/native/_native.")}
    assert len(native) == 2 or shutil.which("cc") is None  # with its types
    data = {"tidemill/py.typed", "tidemill/testing/simple.avsc"}
    data |= {f"tidemill/{path.relative_to(ROOT)}" for path in (ROOT / "server/page").iterdir()}
    assert names == package_files() | data | protocol_files() | native
    (described,) = (n for n in zipfile.ZipFile(wheel).namelist() if n.endswith("/METADATA"))
    text = zipfile.ZipFile(wheel).read(described).decode()
    assert "# tidemill\n" in text
    assert re.findall(r"\]\((?!https?:)[^)]+\)", text) == [], "links to nowhere"
    (words,) = re.findall(r"!\[([^\]]+)\]", (ROOT / "README.md").read_text())
    assert f"\n{words}\n" in text, "the picture's words in its place"
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    source = tmp_path / "source"
    given = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()}
    hidden = {name for name in given if name.startswith((".", "build/", "tidemill.egg-info/"))}
    assert given - hidden - held == set()


def test_the_package_has_the_version_of_its_distribution():
    assert tidemill.__version__ == version("tidemill")
