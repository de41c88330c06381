"""Texts with names in braces: of topics and of headers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import Formatter
from typing import Final

from ...errors import ConfigError, SinkError

TOPIC_NAMES: Final = ("schema", "table")
HEADER_NAMES: Final = ("schema", "table", "op", "commit_ts", "row")

_MAX_TOPIC: Final = 249
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9._-]")


def legal(name: str) -> str:
    """Return a topic's name, with _ for each character that topics can't have."""
    return _ILLEGAL.sub("_", name)


class Template:
    """A text in which {name} stands for a value. Raises ConfigError for a name that isn't known."""

    def __init__(self, text: str, known: tuple[str, ...], option: str) -> None:
        self.text: Final = text
        try:
            parts = [(name, spec or conversion) for _, name, spec, conversion in Formatter().parse(text)]
        except ValueError as error:
            raise ConfigError(f"{option} = {text!r}: {error}") from error
        self.names: Final = frozenset(name for name, _ in parts if name is not None)
        for name, form in parts:
            if name is not None and (name not in known or form):
                raise ConfigError(
                    f"{option} = {text!r}: no name {{{name}}}; accepted: "
                    f"{', '.join(f'{{{one}}}' for one in known)}"
                )

    def fill(self, values: Mapping[str, object]) -> str:
        """Return the text with these values."""
        return self.text.format_map(values) if self.names else self.text


class TopicTemplate(Template):
    """A topic's name for each table."""

    def __init__(self, text: str, option: str) -> None:
        super().__init__(text, TOPIC_NAMES, option)
        rest = self.fill(dict.fromkeys(TOPIC_NAMES, "x"))
        if not rest or _ILLEGAL.search(rest) or rest in (".", ".."):
            raise ConfigError(
                f"{option} = {text!r}: a topic's name has letters, digits, '.', '_' and '-', and the names "
                f"{', '.join(f'{{{one}}}' for one in TOPIC_NAMES)}"
            )

    def topic(self, schema: str, table: str) -> str:
        """Return the topic of a table; a character that topics can't have is written as _.

        Raises SinkError if the name is too long.
        """
        return checked(self.fill({"schema": schema, "table": table}), schema, table)


def checked(topic: str, schema: str, table: str) -> str:
    """Return the topic of a table; a character that topics can't have is written as _.

    Raises SinkError if the name is too long.
    """
    name = legal(topic)
    if len(name) > _MAX_TOPIC or name in (".", ".."):
        raise SinkError(
            f"table {schema}.{table} can't have the topic {name!r}: a name has up to {_MAX_TOPIC} "
            "characters; give the table another one in dispatch",
            f"{schema}.{table}",
        )
    return name
