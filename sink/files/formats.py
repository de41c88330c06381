"""The protocol of formats, which make the content of files, and the formats by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

from ...actors import SystemClock
from ...errors import ConfigError
from ...events import Item, Table, Ts
from .options import LAKES, DirectoryOptions, LinesOptions

if TYPE_CHECKING:
    from ..encoding.encoder import Milliseconds
    from .lines import Lines

Group: TypeAlias = tuple[Table | None, int, str]
"""The changes that are in one file: those of a table version (None for schema changes), of a day since 1970
in UTC, and of a source."""


class Piece(NamedTuple):
    """Encoded changes of one group, in commit order."""

    group: Group
    first: Ts
    last: Ts
    content: Any
    size: int
    """Bytes in memory."""


class Format(Protocol):
    """Makes files of one format. Called only by its sink, `content` by any of its threads."""

    reads_rows: bool

    def start(self) -> None:
        """Forget unfinished transactions: they come again from their first row."""

    def pieces(self, items: Sequence[Item]) -> Iterable[Piece]:
        """Return the pieces of items. Raises SinkError for a value that the format can't hold."""
        ...

    def suffix(self, group: Group) -> str:
        """Return the end of a file's name, with its point."""
        ...

    def content(self, group: Group, pieces: Sequence[Piece]) -> object:
        """Return a file of these pieces, as a buffer."""
        ...

    def pack(self, content: Any) -> Any:
        """Return a piece's content as a buffer, for the journal."""
        ...

    def unpack(self, group: Group, packed: bytes) -> object:
        """Return a piece's content from its buffer."""
        ...


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
    if options.layout in LAKES:
        from .lakes.format import LakeFormat

        return LakeFormat(has_date=options.layout == "iceberg")
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

    encoding = encoding_options(options.format, options.encoding)
    if not (isinstance(encoding, CanalOptions) and encoding.enable_tidb_extension):
        raise ConfigError("row_key needs encoding.enable-tidb-extension = true: it is in the field _tidb")


def _milliseconds() -> Milliseconds:
    clock = SystemClock()
    return lambda: int(clock.time() * 1000)
