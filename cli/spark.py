"""Commands of `tidemill` that need Arrow or Spark, which are imported only when one of them runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from .. import config
from ..engine.progress import open_progress
from ..engine.stopping import set_by_signals
from ..errors import ConfigError
from .flags import DataDir, FeedFile, Json, Name, Sinks, Source, Tables, directory_of, feed_tables
from .say import say

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ..spark.analytics.analyze import FeedStore
    from ..store.plan import Outcome

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


def add_commands(app: typer.Typer) -> None:
    for command in (backfill, capture, analyze, compact):
        app.command()(command)


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
                lambda port: _say(f"listens on {host}:{port}"),
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


Analyzed = Annotated[
    str | None,
    typer.Argument(
        metavar="[FEED.TOML | URL]",
        help="Feed file, or URL of a lake such as delta:///var/lake; or use --data-dir or --archive",
    ),
]
KeepHours = Annotated[
    int | None,
    typer.Option(
        min=1, max=87_600, help="With a lake: hours for which older versions are kept; default: 168, a week"
    ),
]


_WEEK_HOURS = 168


def analyze(
    what: Analyzed = None,
    name: Name = None,
    data_dir: DataDir = None,
    archive: Annotated[Path | None, typer.Option(help="Directory of Parquet files written by a feed")] = None,
    page: Annotated[Path, typer.Option(help="HTML file to write the report to")] = Path("tidemill.html"),
    plan: Annotated[Path | None, typer.Option(help="File to write a plan for `tidemill compact` to")] = None,
    keep_hours: KeepHours = None,
    master: Master = None,
    settings: Settings = None,
) -> None:
    """Report what a feed's store, an archive or a lake holds.

    The report shows live, dead, overlapping and hot data. Nothing is changed.
    """
    if what is not None and "://" in what:
        _only_a_lake(what, {"--name": name, "--data-dir": data_dir, "--archive": archive})
        _analyze_lake(what, page, plan, keep_hours or _WEEK_HOURS, master, settings)
        return
    if keep_hours is not None:
        raise ConfigError("--keep-hours: only with the URL of a lake")
    from ..spark.analytics.analyze import analysis

    file = None if what is None else Path(what)
    feed = None if file is None and data_dir is None else _feed_store(file, name, data_dir)
    if feed is None and archive is None:
        raise ConfigError("analyze: name a feed.toml, --data-dir or --archive")
    if feed is None and plan is not None:
        raise ConfigError("--plan: it is for the store of a feed; name a feed.toml or --data-dir")
    _check_written("--page", page)
    _check_written("--plan", plan)
    with _session(file, master, settings) as spark:
        result = analysis(spark, feed, archive, plan)
    page.write_text(result.page)
    _say(f"wrote {page}")
    if plan is not None:
        if result.plan is None:
            raise ConfigError(f"--plan: {feed and feed.directory} has no store to plan for")
        plan.write_text(result.plan)
        _say(f"wrote {plan}")


def _only_a_lake(url: str, others: Mapping[str, object]) -> None:
    """Raise ConfigError for a flag that is given beside the URL of a lake."""
    for flag, value in others.items():
        if value is not None:
            raise ConfigError(f"{flag}: not with the lake {url}")


def _analyze_lake(
    url: str,
    page: Path,
    plan: Path | None,
    keep_hours: int,
    master: str | None,
    settings: list[str] | None,
) -> None:
    from ..actors import SystemClock
    from ..spark.lakes import Lake, analyze_lake, encode_lake_plan
    from ..spark.lakes.page import lake_page
    from ..spark.lakes.plan import plan_of

    _check_written("--page", page)
    _check_written("--plan", plan)
    lake = Lake(url)
    with _session(None, master, settings, lakes=["delta"]) as spark:
        report = analyze_lake(spark, lake, keep_hours)
    made = plan_of(report)
    page.write_text(lake_page(report, made, SystemClock().time(), "" if plan is None else str(plan)))
    _say(f"wrote {page}")
    if plan is not None:
        plan.write_text(encode_lake_plan(made))
        _say(f"wrote {plan}")


def _compact_lake(
    url: str, path: Path, page: Path | None, master: str | None, settings: list[str] | None, as_json: bool
) -> None:
    from ..actors import SystemClock
    from ..spark.lakes import Lake, analyze_lake, carry_out, decode_lake_plan
    from ..spark.lakes.page import comparison, lake_page
    from ..spark.lakes.plan import plan_of

    plan = decode_lake_plan(_content(path), str(path))
    if plan.lake != url:
        raise ConfigError(f"--plan: {path} is for {plan.lake}")
    _check_written("--page", page)
    lake = Lake(url)
    with _session(None, master, settings, lakes=["delta"]) as spark:
        before = analyze_lake(spark, lake, plan.keep_hours)
        outcomes = []
        for one in carry_out(spark, lake, plan):
            outcomes.append(one)
            _say(one.line)
        after = analyze_lake(spark, lake, plan.keep_hours)
    lines = [f"{what}: {old} before, {new} after" for what, old, new in comparison(before, after)]
    if page is not None:
        page.write_text(lake_page(after, plan_of(after), SystemClock().time(), done=outcomes, before=before))
        _say(f"wrote {page}")
    _report({"before": before, "outcomes": outcomes, "after": after}, lines, as_json)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"--plan: {path}: {error.strerror}") from None


def compact(
    what: Analyzed = None,
    name: Name = None,
    data_dir: DataDir = None,
    plan: Annotated[
        Path | None,
        typer.Option(help="Plan for a running feed's store or a lake, written by `tidemill analyze --plan`"),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(help="With --plan: HTML file to write a report to, with figures from before and after"),
    ] = None,
    archive: Annotated[Path | None, typer.Option(help="Directory of Parquet files to compact")] = None,
    up_to: Annotated[
        int,
        typer.Option(help="With --archive: commit ts up to which only the latest row of each key is kept"),
    ] = 0,
    master: Master = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Compact a running feed's store, an archive, or a lake.

    Requires --plan for the store or the lake, or --archive and --up-to.
    """
    if what is not None and "://" in what:
        _only_a_lake(
            what, {"--name": name, "--data-dir": data_dir, "--archive": archive, "--up-to": up_to or None}
        )
        if plan is None:
            raise ConfigError(f"compact: give --plan, by tidemill analyze {quote(what)} --plan plan.json")
        _compact_lake(what, plan, page, master, settings, as_json)
        return
    file = None if what is None else Path(what)
    if (plan is None) == (archive is None):
        raise ConfigError("compact: give --plan, for a running feed's store, or --archive with --up-to")
    if page is not None and plan is None:
        raise ConfigError("--page: only with --plan; `analyze --archive` writes a page of an archive")
    if plan is not None:
        from ..store.plan import decode_plan

        decoded = decode_plan(_content(plan), str(plan))
        if page is None:
            from ..engine.plan_inbox import PlanInbox

            outcomes = PlanInbox(directory_of(file, data_dir)).hand_over(decoded)
            _report(outcomes, _outcome_lines(outcomes), as_json)
            return
        from ..spark.analytics.analyze import compaction, page_after
        from ..spark.analytics.compared import comparison

        _check_written("--page", page)
        feed = _feed_store(file, name, data_dir)
        with _session(file, master, settings) as spark:
            done = compaction(spark, feed, decoded)
        page.write_text(page_after(feed, done))
        _say(f"wrote {page}")
        lines = [f"{what}: {before} before, {after} after" for what, before, after in comparison(done)]
        _report(done, [*_outcome_lines(done.outcomes), *lines], as_json)
    elif archive is not None:
        from ..spark.archive.archive import compact_archive

        if not 0 < up_to < 1 << 63:
            raise ConfigError(f"--up-to = {up_to}: a commit ts is a number above 0 and below 2^63")
        with _session(file, master, settings) as spark:
            report = compact_archive(spark, archive, up_to)
        lines = [
            f"{one.table}: {one.files_before} files, {one.rows_before:,} rows, {one.bytes_before:,} bytes "
            f"became {one.files_after}, {one.rows_after:,}, {one.bytes_after:,}"
            for one in report.tables
        ]
        _report(report, lines or ["the archive has no tables"], as_json)


def _report(report: object, lines: list[str], as_json: bool) -> None:
    if as_json:
        typer.echo(msgspec.json.encode(report))
    else:
        say(*lines)


def _outcome_lines(outcomes: Iterable[Outcome]) -> list[str]:
    lines = [
        f"{one.store}/{one.window}: {one.bytes_before:,} bytes became {one.bytes_after:,}"
        + (f" ({one.left})" if one.left else "")
        for one in outcomes
    ]
    return lines or ["the plan has no steps"]


def _check_written(flag: str, path: Path | None) -> None:
    if path is not None and (path.is_dir() or not os.access(path.parent, os.W_OK)):
        raise ConfigError(f"{flag}: no file {path} can be written")


def _feed_store(file: Path | None, name: str | None, data_dir: Path | None) -> FeedStore:
    from ..engine.options import StoreOptions
    from ..spark.analytics.analyze import FeedStore

    document = feed_tables(file, None, None, None, name, data_dir)
    kept = {key: value for key, value in document.items() if key in ("data_dir", "sorter")}
    options = config.build(StoreOptions, kept, "")
    assert options.sorter.directory is not None
    arguments = "" if file is None else quote(str(file))
    return FeedStore(options.data_dir, options.sorter.directory, arguments)


@contextmanager
def _session(
    file: Path | None, master: str | None, settings: list[str] | None, lakes: Iterable[str] = ()
) -> Iterator[SparkSession]:
    from ..spark.launch.quiet import quiet_session
    from ..spark.launch.starting import STARTING
    from ..spark.sections import spark_options

    document = feed_tables(file, None, None, None, None, None)
    how = spark_options(document, {"master": master, "config": settings_of_spark(settings)})
    _say(STARTING)
    spark = quiet_session("tidemill", how.master, how.config, lakes=lakes)
    try:
        yield spark
    finally:
        spark.stop()


def settings_of_spark(flags: list[str] | None) -> dict[str, str]:
    """Return Spark's settings from flags. Raises ConfigError."""
    settings = {}
    for text in flags or []:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"--config {text}: expected name=value, for instance spark.executor.memory=2g")
        settings[name.strip()] = value.strip()
    return settings


def _say(text: str) -> None:
    say(text, err=True)
