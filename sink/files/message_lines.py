"""Messages of an encoding as the lines of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...errors import ConfigError
from ...events import Ddl, Item, Ts
from ..encoding.encoder import Encoder, Message, Milliseconds
from ..encoding.encodings import make_encoder

FORMATS: Final = ("canal-json", "debezium", "maxwell", "csv", "simple")
"""Encodings whose values are text, so that a value is a line; keys aren't written."""

_FOREIGN: Final = (
    "large-message-handle-compression",
    "output-field-header",
    "encoding-format",
    "schema-registry",
)
"""Options whose results aren't lines; but JSON is."""


class MessageLines:
    """Forms a line of each message's value."""

    has_definitions = True

    def __init__(self, make: Callable[[], Encoder], end: bytes) -> None:
        self._make: Final = make
        self._end: Final = end
        self.start()

    def start(self) -> None:
        self._encoder = self._make()

    def of(self, item: Item) -> bytes:
        if isinstance(item, Ddl):
            return self._joined(self._encoder.ddl(item))
        return self._joined(self._encoder.rows(list(item.rows), item.last))

    def watermark(self, ts: Ts) -> bytes:
        return self._joined(self._encoder.watermark(ts))

    def _joined(self, messages: list[Message]) -> bytes:
        return b"".join([message.value + self._end for message in messages if message.value is not None])


def message_lines(
    encoding: str,
    options: Mapping[str, Any],
    now: Milliseconds,
    end: bytes = b"\n",
    made: type[MessageLines] = MessageLines,
) -> MessageLines:
    """Return the lines of an encoding, which end in `end`. Raises ConfigError for its options."""
    for name, value in options.items():
        if name.replace("_", "-") in _FOREIGN and value != "json":
            raise ConfigError(f"encoding.{name} can't be given for a file: each message is a line of text")
    make_encoder(encoding, options, now)
    if encoding == "csv":
        end = b""  # a csv message ends in its terminator
    return made(lambda: make_encoder(encoding, options, now), end)
