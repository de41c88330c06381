"""Canal's notation for topics and partitions: canal.mq.dynamicTopic and canal.mq.partitionHash.

Source: MQMessageUtils and CanalKafkaProducer of Canal 1.1.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ...chain.selection.tables import canal_expression
from ...errors import ConfigError
from .template import TopicTemplate

_KEY: Final = "$pk$"
_WILD: Final = frozenset("*?+|(){}[]\\$^")


class DynamicTopic:
    r"""Topics of tables: entries such as `shop\.orders`, `shop` or `topic:shop\..*`, separated by , or ;.

    The first entry that matches "schema.table" decides, else the first that matches the schema. Without a
    topic of its own it is that name in lower case; points in it are written as _. Raises ConfigError.
    """

    def __init__(self, text: str, option: str) -> None:
        self._entries: Final = [_topic_entry(entry, option) for entry in _entries(text, option)]

    def topic(self, schema: str, table: str) -> str:
        """Return the topic of a table, empty if no entry matches."""
        for name, is_table in ((f"{schema}.{table}", True), (schema, False)):
            for topic, names, is_of_tables in self._entries:
                if is_of_tables in (None, is_table) and names.fullmatch(name):
                    return (topic or name.lower()).replace(".", "_")
        return ""

    def constants(self) -> set[str]:
        """Return the topics that entries name."""
        return {topic.replace(".", "_") for topic, _, _ in self._entries if topic}


class HashBy(NamedTuple):
    """Source of the hash of a table's rows: the table's name, its primary key, or columns."""

    by_table: bool = False
    columns: tuple[str, ...] = ()
    """Empty: the primary key."""


class PartitionHash:
    r"""Partitions of tables: entries such as `shop.orders:id^customer`, `.*\..*:$pk$` or `shop\..*`,
    separated by , or ;. The first that matches "schema.table" decides. Raises ConfigError."""

    def __init__(self, text: str, option: str) -> None:
        self._entries: Final = [_hash_entry(entry, option) for entry in _entries(text, option)]

    def of(self, schema: str, table: str) -> HashBy | None:
        """Return a table's choice; None if no entry matches: then its rows go to partition 0."""
        name = f"{schema}.{table}"
        return next((by for names, by in self._entries if names.fullmatch(name)), None)


def _entries(text: str, option: str) -> list[str]:
    entries = [entry.strip() for entry in text.replace(",", ";").split(";")]
    if not all(entries):
        raise ConfigError(f"{option} = {text!r}: an entry is empty")
    return entries


def _expression(text: str, option: str) -> re.Pattern[str]:
    """Return the expression that matches a whole name, in any case; a text without signs is a name itself."""
    return canal_expression(text if _is_wild(text) else re.escape(text), option)


def _is_wild(text: str) -> bool:
    return not _WILD.isdisjoint(text)


def _topic_entry(entry: str, option: str) -> tuple[str, re.Pattern[str], bool | None]:
    """Return the topic, the expression, and True if that is for tables, False for schemas, None for both."""
    topic, colon, names = entry.partition(":")
    if not colon:
        topic, names = "", entry
    topic, names = topic.strip(), names.strip()
    if not names or (colon and not topic):
        raise ConfigError(f"{option}: {entry!r}: write a name or an expression, or topic:expression")
    if topic and TopicTemplate(topic, option).names:
        raise ConfigError(f"{option}: {entry!r}: names in braces are for the URL and dispatch")
    return topic, _expression(names, option), "\\." in names if _is_wild(names) else None


def _hash_entry(entry: str, option: str) -> tuple[re.Pattern[str], HashBy]:
    names, colon, by = entry.rpartition(":")
    if not colon:
        return _expression(entry, option), HashBy(by_table=True)
    if not names:
        raise ConfigError(f"{option}: {entry!r} names no table")
    if by.lower() == _KEY:
        return _expression(names, option), HashBy()
    columns = tuple(filter(None, by.split("^")))
    if not columns:
        raise ConfigError(f"{option}: {entry!r}: name columns after the colon, or {_KEY}")
    if unknown := [name for name in columns if name.startswith("$")]:
        raise ConfigError(
            f"{option}: {entry!r}: no word {unknown[0]!r}; accepted: {_KEY}, or columns such as id^name"
        )
    return _expression(names, option), HashBy(columns=columns)
