"""The commands of one feed: run, status, explain, check."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from msgspec.structs import replace
from rich.console import Console

from ..engine.metrics import metrics_text
from ..engine.progress import explanation, open_progress, panel
from ..engine.status import StatusFile
from ..engine.stopping import set_by_signals
from ..errors import ConfigError
from .flags import (
    DataDir,
    DirectoryFile,
    FeedFile,
    Json,
    Name,
    Sinks,
    Source,
    Tables,
    directory_of,
    feed_tables,
)
from .remote import ServerFeed, may_ask_a_server, say_feeds
from .say import say, say_findings
from .serve import AllowedHosts, TlsCert, TlsKey, TokenFile, window
from .spark import Directory, Master, Settings, settings_of_spark

if TYPE_CHECKING:
    from ..engine.feed import Feed as LocalFeed
    from ..engine.options import FeedOptions

PLAIN_WIDTH = 4096
"""Width of a status that isn't printed on a terminal: nothing is cut."""


def run(
    file: FeedFile = None,
    source: Source = None,
    sink: Sinks = None,
    table: Tables = None,
    name: Name = None,
    data_dir: DataDir = None,
    until: Annotated[
        str | None,
        typer.Option(
            help='Stop at this position; "now": the source\'s present end; default: run until stopped'
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option(help="Engine: local (this process) or spark (parallel Spark tasks)")
    ] = "local",
    master: Master = None,
    partitions: Annotated[
        int | None,
        typer.Option(help="Number of parallel Spark tasks; 1, the default, keeps transactions whole"),
    ] = None,
    trigger: Annotated[
        str | None,
        typer.Option(
            help='Micro-batch interval, such as "10 seconds"; default: start the next batch at once'
        ),
    ] = None,
    directory: Directory = None,
    capture: Annotated[
        list[str] | None,
        typer.Option(help="Address (host:port) of a capture that Spark tasks read from; repeatable"),
    ] = None,
    capture_token_file: Annotated[
        Path | None, typer.Option(help="File with the bearer token for captures")
    ] = None,
    capture_tls: Annotated[
        bool | None, typer.Option("--capture-tls", help="Connect to captures over TLS")
    ] = None,
    capture_ca_file: Annotated[
        Path | None,
        typer.Option(help="PEM file of the CA that signed the captures' certificates; implies --capture-tls"),
    ] = None,
    settings: Settings = None,
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Address of a page and an HTTP API for this feed",
        ),
    ] = None,
    token_file: TokenFile = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    allowed_host: AllowedHosts = None,
    as_json: Json = False,
) -> None:
    """Run a feed until it fails, is stopped or reaches --until.

    Ctrl-C stops it and saves its checkpoint.

        tidemill run feed.toml --until now
    """
    document = feed_tables(file, source, sink, table, name, data_dir)
    if until is not None:
        document["until"] = until
    how: dict[str, Any] = {
        "master": master,
        "partitions": partitions,
        "trigger": trigger,
        "directory": directory,
        "capture": [address for text in capture for address in text.split(",")] if capture else None,
        "capture_token_file": capture_token_file,
        "capture_tls": capture_tls,
        "capture_ca_file": capture_ca_file,
        "config": settings_of_spark(settings),
    }
    match engine:
        case "local":
            if flags := [key for key, value in how.items() if value]:
                raise ConfigError(f"--{flags[0].replace('_', '-')}: it is for --engine spark")
            options = checked_options(document)
            shown_at = None if http is None else (http, token_file, tls_cert, tls_key, allowed_host or ())
            run_local(
                options, as_json, partial(window, document, *shown_at) if shown_at is not None else None
            )
        case "spark":
            if http is not None:
                raise ConfigError("--http: it is for --engine local")
            try:
                from ..spark.run.run import run as run_on_spark
            except ImportError as error:
                raise ConfigError(f"--engine spark needs: pip install 'tidemill[spark]' ({error})") from error

            run_on_spark(document, as_json=as_json, **how)
        case _:
            raise ConfigError(f"--engine: no engine {engine!r}; accepted: local, spark")


def checked_options(document: Mapping[str, Any]) -> FeedOptions:
    """Return a feed's options; sections of other commands, which a local run ignores, are checked too."""
    if not document.keys().isdisjoint(("spark", "capture")):
        from ..spark.sections import spark_feed

        return spark_feed(document)
    from ..engine.options import feed_options

    return feed_options(document)


def run_local(
    options: FeedOptions,
    as_json: bool,
    show: Callable[[LocalFeed], AbstractContextManager[object]] | None = None,
) -> None:
    """Run a feed in this process until it is stopped, fails or is finished.

    `show` makes the feed visible while it runs.
    """
    from ..compare.verification import verified_feed

    feed = verified_feed(options)
    gc.freeze()  # what was imported stays: not visiting it saves a tenth of the CPU of small transactions
    progress = open_progress(sys.stdout if as_json else sys.stderr, as_json=as_json)
    try:
        with set_by_signals(Event()) as stopping, nullcontext() if show is None else show(feed):
            feed.run(stopping, progress.show)
        last = feed.status()
        progress.show(last if as_json else replace(last, detail=""))  # an error is shown once, below
    finally:
        progress.close()
    if feed.error is not None:
        raise feed.error


@may_ask_a_server
def status(
    file: DirectoryFile = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    prometheus: Annotated[
        bool, typer.Option("--prometheus", help="Print metrics in the Prometheus text format")
    ] = False,
    *,
    server_feed: ServerFeed | None,
) -> None:
    """Show the status of a feed, running or not.

    With --server and without --feed, lists the feeds of a server that has several.

        tidemill status feed.toml
    """
    if server_feed is not None:
        feeds = server_feed.several()
        if feeds is not None:
            if as_json:
                typer.echo(msgspec.json.encode(feeds))
            else:
                say_feeds(feeds)
            if any(one.state == "failed" for one in feeds):
                raise typer.Exit(1)
            return
        last = server_feed.client.feed(server_feed.name).status
    else:
        last = StatusFile(directory_of(file, data_dir)).load()
    if prometheus:
        typer.echo(metrics_text([last]), nl=False)
    elif as_json:
        typer.echo(msgspec.json.encode(last))
    else:
        Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH).print(panel(last))
    if last.state == "failed":
        raise typer.Exit(1)


@may_ask_a_server
def explain(
    file: DirectoryFile = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    *,
    server_feed: ServerFeed | None,
) -> None:
    """Explain why a feed is slow or stuck.

    Prints which stage waits for which, and since when.

        tidemill explain feed.toml
    """
    if server_feed is not None:
        lines = server_feed.client.waits(server_feed.name).explanation
    else:
        last = StatusFile(directory_of(file, data_dir)).load()
        lines = explanation(last, last.waits)
    if as_json:
        typer.echo(json.dumps(lines))
    else:
        say(*lines)


def check(
    file: FeedFile = None,
    source: Source = None,
    sink: Sinks = None,
    table: Tables = None,
    name: Name = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Check connections, privileges and settings of a feed.

    Also lists the tables that match. Nothing is changed.

        tidemill check --source mysql://repl@db --table 'shop.*'
    """
    from ..compare.verification import verified_sinks
    from ..engine.preflight import check_feed

    document = feed_tables(file, source, sink, table, name, data_dir)
    options = checked_options(document)
    verified_sinks(options)
    findings = check_feed(options)
    if "spark" in document:
        from ..spark.run.preflight import check_on_spark

        findings += check_on_spark(options)
    say_findings(findings, as_json=as_json)
    if any(finding.level == "error" for finding in findings):
        raise typer.Exit(1)
