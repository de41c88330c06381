"""The `tidemill` command: binds flags, prints, and nothing else."""

from __future__ import annotations

import os
import sys

import typer

from ..errors import ConfigError, TidemillError
from . import feed, requests, spark
from .bench import bench

app = typer.Typer(
    name="tidemill",
    help="Follow a database and deliver its transactions, whole and in commit order.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(bench, name="bench")
feed.add_commands(app)
requests.add_commands(app)
spark.add_commands(app)


def main() -> None:
    """The console script: errors are one sentence on stderr, and status 1 (2 for options)."""
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # else gRPC logs each connection that ends
    try:
        app()
    except ConfigError as error:
        typer.echo(f"tidemill: {error}", err=True)
        sys.exit(2)
    except TidemillError as error:
        typer.echo(f"tidemill: {error}", err=True)
        sys.exit(1)
