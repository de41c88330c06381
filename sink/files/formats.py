"""The formats of files by name, for one file of lines and for folders of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...actors import SystemClock
from ...errors import ConfigError
from .options import DirectoryOptions, LinesOptions

if TYPE_CHECKING:
    from ..encoding.encoder import Milliseconds
    from .file import Lines
    from .piece import Format


def file_lines(options: LinesOptions) -> Lines:
    """Return the lines of one file. Raises ConfigError for the encoding's options."""
    from .message_lines import message_lines
    from .ndjson import NdjsonLines

    _check_encoding(options)
    if options.format == "ndjson":
        return NdjsonLines()
    return message_lines(options.format, options.encoding, _milliseconds())


def folder_format(options: DirectoryOptions) -> Format:
    """Return the format of the files in a directory or bucket. Raises ConfigError for the encoding's
    options."""
    _check_encoding(options)
    if options.format == "parquet":
        from .parquet_format import ParquetFormat

        return ParquetFormat()
    from .csv_lines import CsvLines
    from .lines_format import LinesFormat
    from .message_lines import CanalLines, MessageLines, message_lines
    from .ndjson import NdjsonLines

    is_ticdc = options.layout == "ticdc"
    match options.format:
        case "ndjson":
            return LinesFormat(NdjsonLines(names_source=True), ".ndjson")
        case "csv" if options.row_key or not is_ticdc:
            lines = CsvLines(options.encoding, key_is_last=is_ticdc)
            return LinesFormat(lines, ".csv", lines.header)
    if options.row_key:
        _check_extension(options)
    made = CanalLines if options.row_key else MessageLines
    end = b"\r\n" if is_ticdc else b"\n"
    messages = message_lines(options.format, options.encoding, _milliseconds(), end, made)
    return LinesFormat(messages, ".csv" if options.format == "csv" else ".json")


_WITHOUT_ENCODING: Final = ("ndjson", "parquet")


def _check_encoding(options: LinesOptions | DirectoryOptions) -> None:
    if options.encoding and options.format in _WITHOUT_ENCODING:
        raise ConfigError(f"encoding: the format {options.format} has no such options")


def _check_extension(options: DirectoryOptions) -> None:
    from ..encoding.encodings import encoding_options
    from ..encoding.options import CanalOptions

    found = encoding_options(options.format, options.encoding)
    if not (isinstance(found, CanalOptions) and found.enable_tidb_extension):
        raise ConfigError("row_key needs encoding.enable-tidb-extension = true: it is in the field _tidb")


def _milliseconds() -> Milliseconds:
    clock = SystemClock()
    return lambda: int(clock.time() * 1000)
