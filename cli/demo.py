"""The command demo."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

LARGE_ROWS = 5_000
"""Rows of the one large transaction."""


def demo(
    seconds: Annotated[float, typer.Option(min=1, help="Seconds for which the writers run")] = 12.0,
    seed: Annotated[int, typer.Option(help="Seed of all randomness")] = 1,
    spoil: Annotated[
        bool, typer.Option("--spoil", help="Corrupt one copied row, which the comparison must find")
    ] = False,
) -> None:
    """Follow an emulated TiDB into SQLite, and compare.

    Needs no server. The cluster runs in a process of its own: clients write, regions split and move, a store
    fails, a column and a table are added. A feed copies it into a temporary file meanwhile. In the end each
    row of the copy is compared with the source; the exit status is 0 if they are equal.

        tidemill demo --seconds 30
    """
    from ..benchmarks.demo import Demo, run

    with TemporaryDirectory(prefix="tidemill-demo-") as directory:
        if not run(Path(directory), Demo(seconds=seconds, large=LARGE_ROWS, seed=seed, spoil=spoil)):
            raise typer.Exit(1)
