"""Registry entries for files: one of lines, archives with a journal, directories and object stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote, urlsplit
from uuid import uuid4

from ...actors import SystemClock
from ...codec.checkpoint import decode_checkpoint
from ...config import Finding
from ...config.survey import begins, writable_directory, writable_file
from ...errors import ConfigError
from ...events import Checkpoint
from ..kind import ByFiles, NotOnSpark, SinkContext, SinkKind
from ..sink import Sink
from .address import (
    ARCHIVE_EXAMPLE,
    BUCKET_EXAMPLE,
    DIRECTORY_EXAMPLE,
    FILE_EXAMPLE,
    bucket_of,
    directory_of,
    path_in,
    path_of,
)
from .formats import file_lines, folder_format
from .options import FILE_FORMATS, BucketOptions, DirectoryOptions, LinesOptions, ParquetOptions

if TYPE_CHECKING:
    from .ledger import Ledger
    from .store import Store

_LINES_FILE: Final = "rows.ndjson"
"""Name of the file in a Spark task's folder."""
_LOADED_FILE: Final = "0-load.ndjson"
"""Name of the file loaded without Spark, in a directory that Spark writes."""


# --- one file of lines


def _open_lines(url: str, given: LinesOptions, context: SinkContext) -> Sink:
    from .file import FileSink

    path, options = path_of(url, given, FILE_EXAMPLE)
    return FileSink(context.name, path, context.store, file_lines(options))


def _survey_lines(url: str, given: LinesOptions, context: SinkContext) -> Iterator[Finding]:
    path, options = path_of(url, given, FILE_EXAMPLE)
    file_lines(options)  # raises for options that don't fit
    yield writable_file(path.absolute().resolve())
    yield begins(_stored(context))


def _variant(url: str, options: Mapping[str, Any]) -> SinkKind:
    """Return the kind of a file's format."""
    chosen = _chosen(url, options, "format", "ndjson")
    if chosen not in FILE_FORMATS:
        raise ConfigError(f"no format {chosen!r}; accepted: {', '.join(FILE_FORMATS)}")
    return PARQUET if chosen == "parquet" else LINES if chosen == "ndjson" else MESSAGES


def _chosen(url: str, options: Mapping[str, Any], name: str, default: str) -> Any:
    """Return an option, which may be in the URL."""
    return options.get(name, parse_qs(urlsplit(url).query).get(name, [default])[-1])


# --- an archive with a journal


def _open_parquet(url: str, given: ParquetOptions, context: SinkContext) -> Sink:
    from .parquet import ParquetSink

    path, options = path_of(url, given, ARCHIVE_EXAMPLE)
    return ParquetSink(context.name, path, context.store, options)


def _survey_parquet(url: str, given: ParquetOptions, context: SinkContext) -> Iterator[Finding]:
    yield writable_directory(path_of(url, given, ARCHIVE_EXAMPLE)[0].absolute().resolve())
    yield begins(_stored(context))


def _stored(context: SinkContext) -> Checkpoint | None:
    stored = context.store.load()
    return None if stored is None else stored[0]


# --- Spark


def _folder(url: str) -> Path:
    return path_in(url, FILE_EXAMPLE).absolute()


def _url(scheme: str, path: Path) -> str:
    return f"{scheme}://{quote(str(path))}"


def _marked(path: str, mark: str) -> str:
    file = PurePosixPath(path)
    return str(file.with_name(f"{file.stem}-{mark}{file.suffix}"))


# --- directories and object stores


def _bucket(url: str, given: BucketOptions) -> tuple[Store, BucketOptions]:
    from .bucket import Bucket

    address, options = bucket_of(url, given)
    return Bucket(address, options), options


def _directory(url: str, given: DirectoryOptions) -> tuple[Store, DirectoryOptions]:
    from .directory import Directory

    path, options = directory_of(url, given)
    return Directory(path), options


def storage_sink(store: Store, options: DirectoryOptions, context: SinkContext) -> Sink:
    """Return the sink that writes to a store."""
    from .layout import Layout, TablesLayout
    from .storage import StorageSink
    from .ticdc_layout import TicdcLayout

    layout: Layout = TicdcLayout(store, options) if options.layout == "ticdc" else TablesLayout()
    form, now = folder_format(options), SystemClock().now
    return StorageSink(context.name, context.feed, store, _ledger(store, context), layout, form, options, now)


def _is_ticdc(url: str, options: Mapping[str, Any]) -> bool:
    return bool(_chosen(url, options, "layout", "tables") == "ticdc")


def _ledger(store: Store, context: SinkContext) -> Ledger:
    from .ledger import Ledger

    return Ledger(store, context.feed, context.name, uuid4().hex[:12])


def _survey_bucket(url: str, given: BucketOptions, context: SinkContext) -> Iterator[Finding]:
    store, options = _bucket(url, given)
    folder_format(options)
    store.check()
    yield Finding("ok", f"bucket {bucket_of(url, given)[0].bucket!r} is there")
    yield _begins(store, context)


def _survey_directory(url: str, given: DirectoryOptions, context: SinkContext) -> Iterator[Finding]:
    store, options = _directory(url, given)
    folder_format(options)
    yield writable_directory(directory_of(url, given)[0])
    yield _begins(store, context)


def _begins(store: Store, context: SinkContext) -> Finding:
    state = _ledger(store, context).latest()
    return begins(None if state is None else decode_checkpoint(state.checkpoint, store.name)[0])


LINES: Final = SinkKind(
    name="file",
    schemes=("file",),
    examples=("file:///rows.ndjson",),
    options=LinesOptions,
    open=_open_lines,
    survey=_survey_lines,
    variant=_variant,
    on_spark=ByFiles(
        directory=_folder,
        task_url=lambda folder: _url("file", folder / _LINES_FILE),
        load_url=lambda directory: _url("file", directory / _LOADED_FILE),
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
        directory=_folder,
        task_url=lambda folder: _url("parquet", folder),
        load_url=lambda directory: _url("parquet", directory),
        pattern="**/*.parquet",
        unfinished="_tidemill/journal-*",
        published=_marked,
    ),
)

DIRECTORY: Final = SinkKind(
    name="a directory",
    schemes=("directory",),
    examples=(DIRECTORY_EXAMPLE,),
    options=DirectoryOptions,
    open=lambda url, given, context: storage_sink(*_directory(url, given), context),
    survey=_survey_directory,
    on_spark=NotOnSpark(reason="its tasks would need one commit over all of them: use parquet:///directory"),
    variant=lambda url, options: TICDC_DIRECTORY if _is_ticdc(url, options) else None,
    extra="arrow",
)

BUCKET: Final = replace(
    DIRECTORY,
    name="an object store",
    schemes=("s3",),
    examples=(BUCKET_EXAMPLE,),
    options=BucketOptions,
    open=lambda url, given, context: storage_sink(*_bucket(url, given), context),
    survey=_survey_bucket,
    variant=lambda url, options: TICDC_BUCKET if _is_ticdc(url, options) else None,
    extra="s3",
)

TICDC_DIRECTORY: Final[SinkKind] = replace(DIRECTORY, has_definitions=lambda _: True)
TICDC_BUCKET: Final[SinkKind] = replace(BUCKET, has_definitions=lambda _: True)
