"""Registry entries for NDJSON files and Parquet archives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from ...actors import SystemClock
from ...config import Finding
from ...config.survey import begins, writable_directory, writable_file
from ...config.url import redacted
from ...errors import ConfigError
from ..kind import ByFiles, NotOnSpark, SinkContext, SinkKind
from ..sink import Sink
from .options import LinesOptions, ParquetOptions

if TYPE_CHECKING:
    from .file import Lines

_ACCEPTED: Final = ("ndjson", "canal-json", "debezium", "maxwell", "csv", "simple", "parquet")
"""Formats of files."""
_LINES_FILE: Final = "rows.ndjson"
"""Name of the file in a Spark task's folder."""
_LOADED_FILE: Final = "0-load.ndjson"
"""Name of the file loaded without Spark, in a directory that Spark writes."""


def _open_lines(url: str, options: LinesOptions, context: SinkContext) -> Sink:
    from .file import FileSink

    path = _path(url, "file:///var/rows.ndjson")
    chosen = _split(url)[1] or options.format
    return FileSink(context.name, path, context.store, _lines(chosen, options))


def _lines(chosen: str, options: LinesOptions) -> Lines | None:
    """Return the lines of an encoding; None for those of tidemill's own."""
    if chosen == "ndjson":
        return None
    from .message_lines import message_lines

    clock = SystemClock()
    return message_lines(chosen, options.encoding, lambda: int(clock.time() * 1000))


def _open_parquet(url: str, options: ParquetOptions, context: SinkContext) -> Sink:
    from .parquet import ParquetSink

    return ParquetSink(context.name, _path(url, "parquet:///var/rows"), context.store, options)


def _survey_lines(url: str, options: LinesOptions, context: SinkContext) -> Iterator[Finding]:
    _lines(_split(url)[1] or options.format, options)  # raises for options that don't fit
    yield writable_file(_path(url, "file:///var/rows.ndjson").absolute().resolve())
    yield _begins(context)


def _survey_parquet(url: str, options: ParquetOptions, context: SinkContext) -> Iterator[Finding]:  # noqa: ARG001
    yield writable_directory(_path(url, "parquet:///var/rows").absolute().resolve())
    yield _begins(context)


def _begins(context: SinkContext) -> Finding:
    stored = context.store.load()
    return begins(None if stored is None else stored[0])


def _path(url: str, example: str) -> Path:
    path = _split(url)[0]
    if not path:
        raise ConfigError(f"{redacted(url)!r} names no file; for instance {example}")
    return Path(path)


def _split(url: str) -> tuple[str, str]:
    """Return the path, and the format after ?format=."""
    path, _, chosen = url.partition(":")[2].removeprefix("//").partition("?format=")
    return path, chosen


def _directory(url: str) -> Path:
    return Path(_split(url)[0]).absolute()


def _format(url: str, options: Mapping[str, Any]) -> SinkKind:
    chosen = options.get("format", _split(url)[1] or "ndjson")
    if chosen not in _ACCEPTED:
        raise ConfigError(f"no format {chosen!r}; accepted: {', '.join(_ACCEPTED)}")
    return PARQUET if chosen == "parquet" else LINES if chosen == "ndjson" else MESSAGES


def _marked(path: str, mark: str) -> str:
    file = PurePosixPath(path)
    return str(file.with_name(f"{file.stem}-{mark}{file.suffix}"))


LINES: Final = SinkKind(
    name="file",
    schemes=("file",),
    examples=("file:///rows.ndjson",),
    options=LinesOptions,
    open=_open_lines,
    survey=_survey_lines,
    variant=_format,
    on_spark=ByFiles(
        directory=_directory,
        task_url=lambda folder: f"file://{folder / _LINES_FILE}",
        load_url=lambda directory: f"file://{directory / _LOADED_FILE}",
        pattern=_LINES_FILE,
        published=lambda _, mark: f"{mark}.ndjson",
    ),
)

MESSAGES: Final = replace(
    LINES,
    on_spark=NotOnSpark(reason="its tasks write files of the formats ndjson and parquet only"),
    has_definitions=lambda _: True,
)

PARQUET: Final = SinkKind(
    name="Parquet",
    schemes=("parquet",),
    examples=("parquet:///directory",),
    options=ParquetOptions,
    open=_open_parquet,
    survey=_survey_parquet,
    extra="arrow",
    on_spark=ByFiles(
        directory=_directory,
        task_url=lambda folder: f"parquet://{folder}",
        load_url=lambda directory: f"parquet://{directory}",
        pattern="**/*.parquet",
        unfinished="_tidemill/journal-*",
        published=_marked,
    ),
)
