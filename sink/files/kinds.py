"""Registry entries for files: one file of lines, and folders of files in a directory or an object store.

`parquet:///directory` and `file:///directory?format=parquet` are a directory of Parquet files with a journal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlsplit

from ...actors import SystemClock
from ...codec.checkpoint import decode_checkpoint
from ...config import Finding
from ...config.survey import begins, writable_directory, writable_file
from ...errors import ConfigError
from ...events import Table
from ..kind import ByFiles, NotOnSpark, SinkContext, SinkKind
from ..sink import Sink
from .address import (
    BUCKET_EXAMPLE,
    DELTA_EXAMPLE,
    DIRECTORY_EXAMPLE,
    FILE_EXAMPLE,
    bucket_of,
    directory_of,
    path_of,
)
from .formats import file_lines
from .options import (
    FILE_FORMATS,
    ArchiveOptions,
    BucketOptions,
    DeltaBucketOptions,
    DeltaOptions,
    DirectoryOptions,
    LinesOptions,
)

if TYPE_CHECKING:
    from .target import FilesTarget


# --- one file of lines


def _open_lines(url: str, options: LinesOptions, context: SinkContext) -> Sink:
    from .file import FileSink

    path, options = path_of(url, options, FILE_EXAMPLE)
    return FileSink(context.name, path, context.store, file_lines(options))


def _survey_lines(url: str, options: LinesOptions, context: SinkContext) -> Iterator[Finding]:
    path, options = path_of(url, options, FILE_EXAMPLE)
    file_lines(options)  # raises for options that don't fit
    yield writable_file(path.absolute().resolve())
    stored = context.store.load()
    yield begins(None if stored is None else stored[0])


def _variant(url: str, options: Mapping[str, object]) -> SinkKind:
    """Return the kind of a file's format."""
    chosen = options.get("format", parse_qs(urlsplit(url).query).get("format", ["ndjson"])[-1])
    if chosen not in FILE_FORMATS:
        raise ConfigError(f"no format {chosen!r}; accepted: {', '.join(FILE_FORMATS)}")
    return ARCHIVE if chosen == "parquet" else LINES


# --- folders of files


def _directory(url: str, options: DirectoryOptions, scratch: Path | None = None) -> FilesTarget:
    from .directory import Directory
    from .target import files_target

    path, options = directory_of(url, options)
    return files_target(Directory(path), options, scratch=scratch)


def _bucket(url: str, options: BucketOptions, scratch: Path | None = None) -> FilesTarget:
    from .bucket import Bucket
    from .target import files_target

    address, options = bucket_of(url, options)
    return files_target(Bucket(address, options), options, scratch=scratch)


def storage_sink(target: FilesTarget, context: SinkContext) -> Sink:
    """Return the sink that writes to a target."""
    from .ledger import Ledger
    from .storage import StorageSink

    return StorageSink(target, Ledger(target.store, context.feed, context.name), SystemClock().now)


def _survey_directory(url: str, options: DirectoryOptions, context: SinkContext) -> Iterator[Finding]:
    target = _directory(url, options)
    yield writable_directory(directory_of(url, options)[0])
    yield begins_at(target, context)


def _survey_bucket(url: str, options: BucketOptions, context: SinkContext) -> Iterator[Finding]:
    target = _bucket(url, options)
    target.store.check()
    yield Finding("ok", f"bucket {bucket_of(url, options)[0].bucket!r} is there")
    yield begins_at(target, context)


def begins_at(target: FilesTarget, context: SinkContext) -> Finding:
    """Return a finding: where does the feed begin? Raises as Ledger.latest does."""
    from .ledger import Ledger

    state = Ledger(target.store, context.feed, context.name).latest()
    return begins(None if state is None else decode_checkpoint(state.checkpoint, target.name)[0])


LINES: Final = SinkKind(
    name="file",
    schemes=("file",),
    examples=("file:///rows.ndjson",),
    options=LinesOptions,
    open=_open_lines,
    survey=_survey_lines,
    variant=_variant,
    on_spark=NotOnSpark(
        reason="its tasks would write to one file at once: use directory:///directory?format=ndjson"
    ),
    has_definitions=lambda url, options: path_of(url, options, FILE_EXAMPLE)[1].format != "ndjson",
)

DIRECTORY: Final = SinkKind(
    name="a directory",
    schemes=("directory",),
    examples=(DIRECTORY_EXAMPLE,),
    options=DirectoryOptions,
    open=lambda url, options, context: storage_sink(_directory(url, options, context.scratch), context),
    survey=_survey_directory,
    on_spark=ByFiles(_directory),
    has_definitions=lambda url, options: directory_of(url, options)[1].layout == "ticdc",
    extra="arrow",
)

ARCHIVE: Final = replace(
    DIRECTORY,
    name="Parquet",
    schemes=("parquet",),
    examples=("parquet:///directory",),
    options=ArchiveOptions,
)


def _delta_variant(url: str, options: Mapping[str, object]) -> SinkKind | None:
    kind = _DELTA_BUCKET if urlsplit(url).scheme == "delta+s3" else DELTA
    if is_copy(url, options):
        return replace(kind, on_spark=COPIES_NOT_ON_SPARK, misfits=_copy_misfits)
    return kind if kind is _DELTA_BUCKET else None


def is_copy(url: str, options: Mapping[str, object]) -> bool:
    """Return True if the URL or the raw options of a lake say that it has the present rows."""
    return bool(options.get("mode", parse_qs(urlsplit(url).query).get("mode", [""])[-1]) == "copy")


def _copy_misfits(_: DeltaOptions | DeltaBucketOptions, table: Table) -> Iterator[Finding]:
    from .lakes.copies.delta_columns import refusal

    if why := refusal(table):
        yield Finding("error", why)


COPIES_NOT_ON_SPARK: Final = NotOnSpark(
    reason='mode = "copy" finds rows by an index in data_dir: use mode = "history", or engine = "local"'
)

DELTA: Final = replace(
    DIRECTORY,
    name="Delta",
    schemes=("delta",),
    drivers=("s3",),
    examples=(DELTA_EXAMPLE, "delta+s3://bucket/prefix"),
    options=DeltaOptions,
    variant=_delta_variant,
    extra="lake",
)

BUCKET: Final = replace(
    DIRECTORY,
    name="an object store",
    schemes=("s3",),
    examples=(BUCKET_EXAMPLE,),
    options=BucketOptions,
    open=lambda url, options, context: storage_sink(_bucket(url, options, context.scratch), context),
    survey=_survey_bucket,
    on_spark=ByFiles(_bucket),
    has_definitions=lambda url, options: bucket_of(url, options)[1].layout == "ticdc",
    extra="s3",
)

_DELTA_BUCKET: Final = replace(
    BUCKET, name="Delta", schemes=("delta",), options=DeltaBucketOptions, extra="lake"
)
