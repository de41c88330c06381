"""The `tidemill` command: binds flags, prints, and nothing else."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.core import TyperGroup

from .. import __version__
from ..config.advice import explained
from ..errors import ConfigError, TidemillError
from . import analytics, completion, demo, diff, feed, init, locks, replay, requests, schema, serve, spark
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
    help="Follow a database and deliver whole transactions in commit order.\n\n"
    "    tidemill init mysql://repl:secret@db:3306",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(bench, name="bench")
app.add_typer(dead_letters, name="dead-letters")
app.add_typer(drainer, name="drainer")
for _command in (
    init.init,
    feed.run,
    feed.status,
    feed.explain,
    feed.check,
    requests.tables,
    requests.pause,
    requests.resume,
    requests.snapshot,
    locks.locks,
    locks.unlock,
    diff.diff,
    replay.replay,
    schema.schema,
    demo.demo,
    completion.completion,
    serve.serve,
    spark.backfill,
    spark.capture,
    analytics.analyze,
    analytics.compact,
):
    app.command()(_command)


def _version(wanted: bool) -> None:
    if wanted:
        from ..codec.native.library import description

        say(f"tidemill {__version__}, decoder {description()}, Python {platform.python_version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_version,
            is_eager=True,
            help="Print the versions of tidemill and Python, and the decoder",
        ),
    ] = False,
) -> None:
    """Options of every command."""


def main() -> None:
    """The console script: an error is a line on stderr that says what to do, and status 1 (2 for options)."""
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # else gRPC logs each connection that ends
    try:
        status = app(standalone_mode=False)
    except typer.TyperException as error:
        sys.exit(_misused(error))
    except typer.Abort:
        sys.exit(1)
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
        say(f"tidemill: {explained(error)}", err=True)
        sys.exit(1)
    sys.exit(status or 0)


def _misused(error: typer.TyperException) -> int:
    """Print an error about the words of a command line, or the help of a command without any; return the
    status."""
    text = error.format_message()
    if "\n" in text:
        typer.echo(text, err=True)
    else:
        say(f"tidemill: {text.rstrip('.')}: see {_command_of(sys.argv[1:])} --help", err=True)
    return error.exit_code


def _command_of(words: Sequence[str]) -> str:
    """Return the command that these words begin with."""
    command, path = typer.main.get_command(app), ["tidemill"]
    for word in words:
        if not isinstance(command, TyperGroup) or word not in command.commands:
            break
        command = command.commands[word]
        path.append(word)
    return " ".join(path)
