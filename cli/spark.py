"""Commands of a feed that need Arrow or Spark, which are imported only when one of them runs."""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Event
from typing import Annotated, Any

import typer

from ..engine.progress import open_progress
from ..engine.stopping import set_by_signals
from ..errors import ConfigError
from .flags import DataDir, FeedFile, Json, Name, Sinks, Source, Tables, feed_tables
from .say import say

Master = Annotated[
    str | None, typer.Option(help="Spark master, such as spark://host:7077 or yarn; default: local[2]")
]
Directory = Annotated[
    Path | None,
    typer.Option(
        help="Directory for rows until they are loaded, shared by driver and executors; default: "
        "DATA_DIR/backfill"
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--config", metavar="NAME=VALUE", help="Spark setting, such as spark.executor.memory=2g; repeatable"
    ),
]


def capture(
    file: FeedFile = None,
    source: Source = None,
    table: Tables = None,
    name: Name = None,
    data_dir: DataDir = None,
    listen: Annotated[
        str | None,
        typer.Option(
            help="Address to listen on; default: 127.0.0.1:8815. Others than loopback need a token and TLS"
        ),
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the bearer token that clients must send")
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(help="PEM file of the server's certificate; requires --tls-key")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(help="PEM file of the certificate's key; requires --tls-cert")
    ] = None,
    memory_bytes: Annotated[
        str | None, typer.Option(help='Maximum size of changes in memory; default: "64MiB"')
    ] = None,
    disk_bytes: Annotated[
        str | None, typer.Option(help='Maximum size of changes on disk; default: "4GiB"')
    ] = None,
    as_json: Json = False,
) -> None:
    """Serve a source's changes over Arrow Flight.

    Clients are Spark tasks (`tidemill run --capture`) and any other program that speaks Arrow Flight.

        tidemill capture feed.toml --listen 127.0.0.1:8815
    """
    try:
        from ..spark.capture.capture import serve
        from ..spark.sections import capture_feed
    except ImportError as error:
        raise ConfigError(f"a capture needs: pip install 'tidemill[arrow]' ({error})") from error
    flags: dict[str, object] = {
        "listen": listen,
        "token_file": token_file,
        "tls_cert": tls_cert,
        "tls_key": tls_key,
        "memory_bytes": memory_bytes,
        "disk_bytes": disk_bytes,
    }
    options = capture_feed(feed_tables(file, source, None, table, name, data_dir), flags)
    progress = open_progress(sys.stdout if as_json else sys.stderr, as_json=as_json)
    host = options.capture.listen.rpartition(":")[0]
    try:
        with set_by_signals(Event()) as stopping:
            serve(
                options,
                options.capture,
                stopping,
                progress.show,
                lambda port: say(f"listens on {host}:{port}", err=True),
            )
    finally:
        progress.close()


def backfill(
    file: FeedFile = None,
    source: Source = None,
    sink: Sinks = None,
    table: Tables = None,
    name: Name = None,
    data_dir: DataDir = None,
    directory: Directory = None,
    master: Master = None,
    chunk_rows: Annotated[
        int | None, typer.Option(help="Approximate number of rows per chunk; default: 100000")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the files after the sinks are loaded")] = False,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Load a feed's sinks with parallel Spark tasks.

    `run` continues from the position that was loaded.

        tidemill backfill feed.toml --master 'local[4]'
    """
    try:
        from ..spark.backfill.run import run
    except ImportError as error:
        raise ConfigError(f"a backfill needs: pip install 'tidemill[spark]' ({error})") from error
    document = feed_tables(file, source, sink, table, name, data_dir)
    how: dict[str, Any] = {
        "directory": directory,
        "master": master,
        "backfill": None if chunk_rows is None else {"chunk_rows": chunk_rows},
    }
    run(document, keep=keep, as_json=as_json, config=settings_of_spark(settings), **how)


def settings_of_spark(flags: list[str] | None) -> dict[str, str]:
    """Return Spark's settings from flags. Raises ConfigError."""
    settings = {}
    for text in flags or []:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--config {text}: expected name=value, for instance spark.executor.memory=2g")
        settings[name.strip()] = value.strip()
    return settings
