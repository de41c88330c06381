"""`tidemill run` with a cluster as master."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tidemill.testing.progress import completed

from .copied import Copied
from .pythons import link
from .standalone import Cluster, Session

NAME: Final = "spark-python"
"""Name of the Python for PYSPARK_PYTHON, which each host finds by its PATH."""


def configure(directory: Path, copied: Copied, *more: str) -> Path:
    """A feed of both tables into their copies."""
    url = copied.sql.server.url()
    lines = [
        'name = "copy"',
        f'data_dir = "{directory / "state"}"',
        "[source]",
        f'url = "{url}"',
        f"tables = {json.dumps(copied.patterns.split(','))}",
        "[[sink]]",
        'name = "copy"',
        f'url = "{url}"',
        f'schema = "{copied.copy}"',
        *more,
    ]
    config = directory / "feed.toml"
    config.write_text("\n".join(lines) + "\n")
    return config


def command(cluster: Cluster, python: Path, config: Path) -> Sequence[str | Path]:
    return [python, "-m", "tidemill.cli", "run", config, "--engine", "spark", "--master", cluster.url]


def started(cluster: Cluster, python: Path, config: Path, *more: str) -> Session:
    """Driver and workers run `python`."""
    environment = cluster.environment(python)
    log = config.with_name("log")
    return Session([*command(cluster, python, config), *more], log, env=environment, cwd=config.parent)


def refused(cluster: Cluster, python: Path, workers: Path | None, copied: Copied, directory: Path) -> str:
    """The sentence that is all that a run says, whose workers have another Python, or none."""
    before = copied.counted(copied.copy)
    link(cluster.programs / NAME, workers)
    driver = directory / "driver"
    link(driver / NAME, python)
    environment = cluster.environment(NAME)
    environment["PATH"] = f"{driver}{os.pathsep}{environment['PATH']}"
    done = completed(
        [*command(cluster, python, configure(directory, copied)), "--until", "now"],
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    said = [line for line in done.stderr.splitlines() if "event=" not in line]
    assert (done.returncode, len(said)) == (2, 1), done
    assert copied.counted(copied.copy) == before
    return said[0].removeprefix("tidemill: ")
