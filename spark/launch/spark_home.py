"""A home for Spark whose Python workers import the installed PySpark."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pyspark
from pyspark import SparkContext

from ...store.temporary import temporary_directory

VARIABLE: Final = "SPARK_HOME"
_ZIPPED: Final = "python"
"""The folder that holds pyspark.zip."""


@contextmanager
def installed_pyspark(master: str) -> Iterator[None]:
    """Start a JVM within it: its workers on this machine import PySpark from the driver's environment.

    Spark puts the pyspark.zip of its home before the installed package, and Python keeps no compiled files of
    a zip: each worker compiles PySpark, which takes 1.4 CPU seconds instead of 0.5. A query starts four to
    six of them, and Spark gives one up after ten seconds.

    Nothing changes for a home or a Python that the environment names, for a JVM that runs, and for clusters,
    some of which send the zip to their executors.
    """
    if not _applies(master):
        yield
        return
    os.environ[VARIABLE] = str(_linked(Path(pyspark.__file__).parent))
    try:
        yield
    finally:
        del os.environ[VARIABLE]


def _applies(master: str) -> bool:
    return (
        master.startswith("local")
        and not master.startswith("local-cluster")
        and SparkContext._gateway is None
        and VARIABLE not in os.environ
        and os.environ.get("PYSPARK_PYTHON") == sys.executable
        and (Path(pyspark.__file__).parent / "jars").is_dir()
    )


def _linked(package: Path) -> Path:
    """Return a folder with links to the package without its zip files; removed at the end of this process."""
    stack = ExitStack()
    atexit.register(stack.close)
    home = stack.enter_context(temporary_directory("spark"))
    for entry in package.iterdir():
        if entry.name != _ZIPPED:
            (home / entry.name).symlink_to(entry)
    return home
