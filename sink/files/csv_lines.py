"""Lines of csv with the key of each row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...errors import ConfigError
from ...events import Item, Table, Transaction, Ts
from ..encoding.csv import CsvEncoder, quoting
from ..encoding.encodings import encoding_options
from ..encoding.options import CsvOptions
from .lines import RowNumbers

_KEY: Final = ("source", "ts", "n")


class CsvLines:
    """Writes the source, the commit ts and the number of the row in its transaction before the columns of the
    encoding, or after them."""

    has_definitions = False

    def __init__(self, options: Mapping[str, Any], *, key_is_last: bool = False) -> None:
        """With `key_is_last`, files have no line of names. Raises ConfigError for the encoding's options."""
        written = {name.replace("_", "-"): value for name, value in options.items()}
        made = encoding_options("csv", {"output-field-header": not key_is_last, **written})
        assert isinstance(made, CsvOptions)
        self._options: Final = made
        if self._options.output_old_value:
            raise ConfigError(
                "encoding.output-old-value: an update would be two rows with one key; give "
                + ("row_key = false" if key_is_last else 'layout = "ticdc", whose rows have no keys')
                + ', or format = "ndjson"'
            )
        if key_is_last and self._options.output_field_header:
            raise ConfigError("encoding.output-field-header: files of TiCDC's layout have no line of names")
        self._is_last: Final = key_is_last
        self._encoder: Final = CsvEncoder(self._options, int)
        self._quote: Final = quoting(self._options)
        self._end: Final = self._options.terminator.encode()
        self._numbers: Final = RowNumbers()

    def start(self) -> None:
        self._numbers.start()

    def header(self, table: Table) -> bytes:
        """Return the line of the columns' names; empty without output-field-header."""
        key = self._options.delimiter.join([*_KEY, ""])
        header = self._encoder.header(table)
        return header and key.encode() + header

    def of(self, item: Item) -> bytes:
        assert isinstance(item, Transaction)
        delimiter = self._options.delimiter
        start = f"{self._quote(item.source)}{delimiter}{item.commit_ts}{delimiter}"
        lines = []
        for n, message in enumerate(self._encoder.rows(item.rows), self._numbers.first(item)):
            line = message.value or b""
            if self._is_last:
                line = line.removesuffix(self._end)
                lines.append(line + f"{delimiter}{start}{n}".encode() + self._end)
            else:
                lines.append(f"{start}{n}{delimiter}".encode() + line)
        return b"".join(lines)

    def watermark(self, ts: Ts) -> bytes:  # noqa: ARG002
        return b""
