"""Registry entries for object stores and directories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from ...actors import SystemClock
from ...codec.checkpoint import decode_checkpoint
from ...config import Finding
from ...config.survey import begins, writable_directory
from ...errors import ConfigError
from ..kind import NotOnSpark, SinkContext, SinkKind
from ..sink import Sink
from .address import BUCKET_EXAMPLE, DIRECTORY_EXAMPLE, bucket_of, directory_of
from .options import BucketOptions, DirectoryOptions

if TYPE_CHECKING:
    from .ledger import Ledger
    from .piece import Format
    from .store import Store

_NOT_ON_SPARK: Final = NotOnSpark(
    reason="its tasks would need one commit over all of them: use parquet:///directory"
)


def _open_bucket(url: str, given: BucketOptions, context: SinkContext) -> Sink:
    from .bucket import Bucket

    address, options = bucket_of(url, given)
    return storage_sink(Bucket(address, options), options, context)


def _open_directory(url: str, given: DirectoryOptions, context: SinkContext) -> Sink:
    from .directory import Directory

    path, options = directory_of(url, given)
    return storage_sink(Directory(path), options, context)


def storage_sink(store: Store, options: DirectoryOptions, context: SinkContext) -> Sink:
    """Return the sink that writes to a store."""
    from .layout import Layout, TablesLayout
    from .storage import StorageSink
    from .ticdc_layout import TicdcLayout

    clock = SystemClock()
    layout: Layout = TicdcLayout(store, options) if options.layout == "ticdc" else TablesLayout()
    form = _format(options, clock)
    return StorageSink(
        context.name, context.feed, store, _ledger(store, context), layout, form, options, clock.now
    )


def _ledger(store: Store, context: SinkContext) -> Ledger:
    from .ledger import Ledger

    return Ledger(store, context.feed, context.name, uuid4().hex[:12])


def _format(options: DirectoryOptions, clock: SystemClock) -> Format:
    """Return the format. Raises ConfigError for the encoding's options."""
    if options.encoding and options.format in ("parquet", "ndjson"):
        raise ConfigError(f"encoding: the format {options.format} has no such options")
    if options.format == "parquet":
        from .parquet_format import ParquetFormat

        return ParquetFormat()
    from ..encoding.encodings import encoding_options
    from ..files.message_lines import MessageLines, message_lines
    from ..files.ndjson import NdjsonLines
    from .canal_lines import CanalLines
    from .csv_lines import CsvLines
    from .lines_format import LinesFormat

    is_ticdc = options.layout == "ticdc"
    match options.format:
        case "ndjson":
            return LinesFormat(NdjsonLines(names_source=True), ".ndjson")
        case "csv" if not is_ticdc:
            lines = CsvLines(options.encoding)
            return LinesFormat(lines, ".csv", lines.header)
        case "csv" if options.row_key:
            return LinesFormat(CsvLines(options.encoding, key_is_last=True), ".csv")
    encoding: Mapping[str, Any] = options.encoding
    made = MessageLines
    if options.row_key:
        made = CanalLines
        if not getattr(encoding_options(options.format, encoding), "enable_tidb_extension", False):
            raise ConfigError("row_key needs encoding.enable-tidb-extension = true: it is in the field _tidb")
    messages = message_lines(
        options.format, encoding, lambda: int(clock.time() * 1000), b"\r\n" if is_ticdc else b"\n", made
    )
    return LinesFormat(messages, ".csv" if options.format == "csv" else ".json")


def _survey_bucket(url: str, given: BucketOptions, context: SinkContext) -> Iterator[Finding]:
    from .bucket import Bucket

    address, options = bucket_of(url, given)
    _format(options, SystemClock())
    store = Bucket(address, options)
    store.check()
    yield Finding("ok", f"bucket {address.bucket!r} is there")
    yield _begins(store, context)


def _survey_directory(url: str, given: DirectoryOptions, context: SinkContext) -> Iterator[Finding]:
    from .directory import Directory

    path, options = directory_of(url, given)
    _format(options, SystemClock())
    yield writable_directory(path)
    yield _begins(Directory(path), context)


def _begins(store: Store, context: SinkContext) -> Finding:
    state = _ledger(store, context).latest()
    return begins(None if state is None else decode_checkpoint(state.checkpoint, store.name)[0])


BUCKET: Final = SinkKind(
    name="an object store",
    schemes=("s3",),
    examples=(BUCKET_EXAMPLE,),
    options=BucketOptions,
    open=_open_bucket,
    survey=_survey_bucket,
    on_spark=_NOT_ON_SPARK,
    has_definitions=lambda options: options.layout == "ticdc",
    extra="s3",
)

DIRECTORY: Final = SinkKind(
    name="a directory",
    schemes=("directory",),
    examples=(DIRECTORY_EXAMPLE,),
    options=DirectoryOptions,
    open=_open_directory,
    survey=_survey_directory,
    on_spark=_NOT_ON_SPARK,
    has_definitions=lambda options: options.layout == "ticdc",
    extra="arrow",
)
