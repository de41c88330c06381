"""The commands analyze and compact, about what a feed keeps: its scratch store, an archive, a lake."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
import typer

from .. import config
from ..errors import ConfigError
from .flags import DataDir, Json, Name, directory_of, feed_tables
from .say import say
from .spark import Master, Settings, settings_of_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ..sink.files.lakes.upkeep import Executor, Lake
    from ..sink.registry import GivenSink
    from ..spark.analytics.analyze import FeedStore
    from ..store.plan import StepOutcome

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
LakeSink = Annotated[
    str | None, typer.Option("--sink", help="With a file that has the lake's [[sink]]: its name")
]
_WEEK_HOURS = 168


def analyze(
    what: Analyzed = None,
    name: Name = None,
    data_dir: DataDir = None,
    archive: Annotated[Path | None, typer.Option(help="Directory of Parquet files written by a feed")] = None,
    page: Annotated[Path, typer.Option(help="HTML file to write the report to")] = Path("tidemill.html"),
    plan: Annotated[Path | None, typer.Option(help="File to write a plan for `tidemill compact` to")] = None,
    sink: LakeSink = None,
    keep_hours: KeepHours = None,
    master: Master = None,
    settings: Settings = None,
) -> None:
    """Report what a feed's store, an archive or a lake holds.

    The report shows live, dead, overlapping and hot data. Nothing is changed.

        tidemill analyze feed.toml --page report.html
    """
    if what is not None and ("://" in what or sink is not None):
        others = {"--name": name, "--data-dir": data_dir, "--archive": archive}
        _only(f"the lake {what}", others)
        _only("a lake, which is analyzed without Spark; `compact` takes it", _spark_flags(master, settings))
        _analyze_lake(what, sink, page, plan, keep_hours or _WEEK_HOURS)
        return
    if keep_hours is not None:
        raise ConfigError("--keep-hours: only with a lake: give its URL, or a feed file and --sink")
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
    say(f"wrote {page}", err=True)
    if plan is not None:
        if result.plan is None:
            raise ConfigError(f"--plan: {feed and feed.directory} has no store to plan for")
        plan.write_text(result.plan)
        say(f"wrote {plan}", err=True)


def _spark_flags(master: str | None, settings: list[str] | None) -> dict[str, object]:
    return {"--master": master, "--config": settings or None}


def _only(what: str, others: Mapping[str, object]) -> None:
    """Raise ConfigError for a flag that doesn't go with something that is given."""
    for flag, value in others.items():
        if value is not None:
            raise ConfigError(f"{flag}: not with {what}")


def _given_lake(what: str, sink: str | None) -> GivenSink:
    """Return the lake's sink, of a URL, or of a file and a name in it. Raises ConfigError."""
    if "://" in what:
        from ..sink.registry import given_sink

        return given_sink("lake", what)
    return _sink_in(what, sink, "--sink")


def _given_copy(what: str, copy: str) -> GivenSink:
    """As `_given_lake`, of the lake with the present rows."""
    if "://" in copy:
        from ..sink.registry import given_sink

        return given_sink("copy", copy, {"mode": "copy"})
    if "://" in what:
        raise ConfigError(f"--copy: {copy!r} is no URL, and the name of a sink needs a file with sinks")
    return _sink_in(what, copy, "--copy")


def _sink_in(file: str, name: str | None, flag: str) -> GivenSink:
    from ..engine.sink_options import sinks_in

    sinks = sinks_in(config.read(Path(file)))
    if name not in sinks:
        raise ConfigError(f"{flag}: {file} has no sink {name!r}; accepted: {', '.join(sinks)}")
    return sinks[name].given


@contextmanager
def _lake(sink: GivenSink) -> Iterator[Lake]:
    """Yield the lake of a sink. Raises ConfigError."""
    try:
        from ..sink.files.lakes.upkeep import lake_of
    except ImportError as error:
        raise ConfigError(f"a lake needs: pip install 'tidemill[lake]' ({error})") from error
    with closing(lake_of(str(sink.target), sink.options)) as lake:
        yield lake


def _analyze_lake(what: str, sink: str | None, page: Path, plan: Path | None, keep_hours: int) -> None:
    from ..actors import SystemClock

    _check_written("--page", page)
    _check_written("--plan", plan)
    with _lake(_given_lake(what, sink)) as lake:
        from ..sink.files.lakes.upkeep import analyze_lake, encode_lake_plan, plan_of
        from ..spark.analytics.lake_page import lake_page

        report = analyze_lake(lake, SystemClock(), keep_hours)
    made = plan_of(report)
    page.write_text(lake_page(report, made, SystemClock().time(), "" if plan is None else str(plan)))
    say(f"wrote {page}", err=True)
    if plan is not None:
        plan.write_text(encode_lake_plan(made))
        say(f"wrote {plan}", err=True)


def _compact_lake(
    sink: GivenSink, spark: _Spark | None, path: Path, page: Path | None, as_json: bool
) -> None:
    from ..actors import SystemClock

    _check_written("--page", page)
    clock = SystemClock()
    with _lake(sink) as lake:
        from ..sink.files.lakes.upkeep import analyze_lake, carry_out, decode_lake_plan, plan_of
        from ..spark.analytics.lake_page import comparison, lake_page

        plan = decode_lake_plan(_content(path), str(path))
        if plan.lake != lake.url:
            raise ConfigError(f"--plan: {path} is for {plan.lake}")
        before = analyze_lake(lake, clock, plan.keep_hours)
        outcomes = []
        with _executor(sink, spark) as execute:
            for one in carry_out(lake, plan, clock, execute):
                outcomes.append(one)
                say(one.line, err=True)
        after = analyze_lake(lake, clock, plan.keep_hours)
    lines = [f"{what}: {old} before, {new} after" for what, old, new in comparison(before, after)]
    if page is not None:
        page.write_text(lake_page(after, plan_of(after), clock.time(), done=outcomes, before=before))
        say(f"wrote {page}", err=True)
    _report({"before": before, "outcomes": outcomes, "after": after}, lines, as_json)


class _Spark(NamedTuple):
    """Where Spark is to run."""

    file: Path | None
    master: str
    settings: list[str] | None


@contextmanager
def _executor(sink: GivenSink, spark: _Spark | None) -> Iterator[Executor | None]:
    """Yield an executor of Spark's tasks; None to use this process."""
    if spark is None:
        yield None
        return
    with _session(*spark) as session:
        from ..spark.lakes.joins import SparkJoins

        yield SparkJoins(session, str(sink.target), sink.options)


def _merge_lake(what: str, sink: str | None, copy: str, index: Path | None, as_json: bool) -> None:
    from ..actors import SystemClock

    given = _given_copy(what, copy)
    with _lake(_given_lake(what, sink)) as lake:
        from ..sink.files.lakes.upkeep import Merge, copy_target

        target = copy_target(str(given.target), given.options, index)
        report = Merge(lake, target, SystemClock()).run()
    _report(report, report.lines, as_json)


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
        typer.Option(help="With --plan: HTML file for a report with figures from before and after"),
    ] = None,
    archive: Annotated[Path | None, typer.Option(help="Directory of Parquet files to compact")] = None,
    sink: LakeSink = None,
    copy: Annotated[
        str | None,
        typer.Option(
            help="With a lake of changes: lake to update with the latest row of each key, by its URL, or by "
            "the name of its sink in the file"
        ),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(help="With --copy: directory that keeps the target's keys between runs"),
    ] = None,
    up_to: Annotated[
        int,
        typer.Option(help="With --archive: commit ts up to which each key keeps only its latest row"),
    ] = 0,
    master: Master = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Compact a running feed's store, an archive, or a lake.

    Requires --plan for the store or the lake, --copy for a lake, or --archive and --up-to. A lake is
    compacted in this process, or with --master by Spark.

        tidemill compact feed.toml --plan plan.json
    """
    if what is not None and ("://" in what or sink is not None):
        others = {"--name": name, "--data-dir": data_dir, "--archive": archive, "--up-to": up_to or None}
        _only(f"the lake {what}", others)
        if copy is not None:
            _only("--copy", {"--plan": plan, "--page": page, **_spark_flags(master, settings)})
            _merge_lake(what, sink, copy, index, as_json)
            return
        if plan is None:
            raise ConfigError(f"compact: give --plan, by tidemill analyze {quote(what)} --plan plan.json")
        if master is None and settings:
            raise ConfigError("--config: it is for Spark, which compacts a lake only with --master")
        where = None if master is None else _Spark(None if "://" in what else Path(what), master, settings)
        _compact_lake(_given_lake(what, sink), where, plan, page, as_json)
        return
    if copy is not None or index is not None:
        raise ConfigError("--copy, --index: only with a lake: give its URL, or a feed file and --sink")
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
        say(f"wrote {page}", err=True)
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


def _outcome_lines(outcomes: Iterable[StepOutcome]) -> list[str]:
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
def _session(file: Path | None, master: str | None, settings: list[str] | None) -> Iterator[SparkSession]:
    from ..spark.launch.quiet import quiet_session
    from ..spark.launch.starting import STARTING
    from ..spark.sections import spark_options

    document = feed_tables(file, None, None, None, None, None)
    how = spark_options(document, {"master": master, "config": settings_of_spark(settings)})
    say(STARTING, err=True)
    spark = quiet_session("tidemill", how.master, how.config)
    try:
        yield spark
    finally:
        spark.stop()
