"""The `tidemill` command: binds flags, prints, and nothing else."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from .. import __version__
from ..errors import ConfigError, TidemillError
from . import diff, feed, locks, replay, requests, schema, serve, spark
from .bench import bench
from .dead_letters import dead_letters
from .drainer import drainer
from .say import say

_EXTRAS = {
    "pymysql": "mysql",
    "pymysqlreplication": "mysql",
    "psycopg": "postgres",
    "pyarrow": "arrow",
    "numpy": "arrow",
    "pyspark": "spark",
    "duckdb": "duckdb",
    "deltalake": "lake",
    "confluent_kafka": "kafka",
    "etcd3": "etcd",
    "starlette": "http",
    "uvicorn": "http",
    "tomli_w": "http",
}
"""Extras that install a module, for commands that need it at once."""

app = typer.Typer(
    name="tidemill",
    help="Follow a database and deliver whole transactions in commit order.\n\nFor instance: tidemill run "
    "--source mysql://repl:secret@db:3306 --table 'shop.*' --sink sqlite:///copy.db",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(bench, name="bench")
app.add_typer(dead_letters, name="dead-letters")
app.add_typer(drainer, name="drainer")
feed.add_commands(app)
requests.add_commands(app)
locks.add_commands(app)
diff.add_commands(app)
replay.add_commands(app)
schema.add_commands(app)
serve.add_commands(app)
spark.add_commands(app)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"tidemill {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version")
    ] = False,
) -> None:
    """Options of every command."""


def main() -> None:
    """The console script: errors are one sentence on stderr, and status 1 (2 for options)."""
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # else gRPC logs each connection that ends
    try:
        app()
    except ConfigError as error:
        say(f"tidemill: {error}", err=True)
        sys.exit(2)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        say(f"tidemill: this needs: pip install 'tidemill[{extra}]' ({error})", err=True)
        sys.exit(2)
    except TidemillError as error:
        say(f"tidemill: {error}", err=True)
        sys.exit(1)
