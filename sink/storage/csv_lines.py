"""Lines of csv with the key of each row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...config import build
from ...errors import ConfigError
from ...events import Item, Table, Transaction, Ts
from ..encoding.csv import CsvEncoder, quoting
from ..encoding.options import CsvOptions

_KEY: Final = ("source", "ts", "n")


class CsvLines:
    """Writes the source, the commit ts and the number of the row in its transaction before the columns of the
    encoding."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        """Raises ConfigError for the encoding's options."""
        given = {name.replace("-", "_"): value for name, value in options.items()}
        self._options: Final = build(CsvOptions, {"output_field_header": True, **given}, "csv")
        if self._options.output_old_value:
            raise ConfigError(
                "encoding.output-old-value: an update would be two rows with one key; give "
                'layout = "ticdc", whose rows have no keys, or format = "ndjson"'
            )
        self._encoder: Final = CsvEncoder(self._options, int)
        self._quote: Final = quoting(self._options)
        self.start()

    def start(self) -> None:
        self._ts, self._next_row = 0, 0

    def header(self, table: Table) -> bytes:
        """Return the line of the columns' names; empty without output-field-header."""
        key = self._options.delimiter.join([*_KEY, ""])
        header = self._encoder.header(table)
        return header and key.encode() + header

    def of(self, item: Item) -> bytes:
        assert isinstance(item, Transaction)
        first = self._next_row if item.commit_ts == self._ts else 0
        self._ts, self._next_row = item.commit_ts, first + len(item.rows)
        delimiter = self._options.delimiter
        start = f"{self._quote(item.source)}{delimiter}{item.commit_ts}{delimiter}"
        lines = enumerate(self._encoder.rows(item.rows), first)
        return b"".join([f"{start}{n}{delimiter}".encode() + (line.value or b"") for n, line in lines])

    def watermark(self, ts: Ts) -> bytes:  # noqa: ARG002
        return b""
