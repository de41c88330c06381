"""The first feed.toml of a live source: its tables, what it lacks, and where its secrets are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from textwrap import wrap
from typing import Final

from msgspec import Struct

from .. import config
from ..actors import SystemClock
from ..chain.selection.tables import exactly
from ..config import Finding
from ..config.printable import printable
from ..config.schema import docstrings
from ..config.secrets import with_variables
from ..dialects.database import OWN_SCHEMA
from ..errors import SourceError
from ..sources.source import SourceInfo
from .opening import open_source
from .options import DEFAULT_NAME, FeedOptions, feed_options
from .preflight import check_feed

FIRST_SINK: Final = "sqlite:///copy.db"
"""Target of a feed for which none is named."""
_EVERY_TABLE: Final = ("*.*",)
_WIDTH: Final = 110
"""Characters in a line of a comment."""
_LISTED: Final = 1000
"""Maximum number of tables that are listed in comments."""


class Draft(Struct, frozen=True):
    text: str
    """The file."""
    findings: list[Finding]
    """Results of the check of this feed, and errors about the tables that it leaves out."""
    followed: int
    """Number of the tables that it follows now."""
    left_out: tuple[str, ...]
    """Full names of tables that match, but can't be followed: the file excludes them."""
    secrets: Mapping[str, str]
    """Variables of the environment that the file needs, and the secrets of the given URLs for them."""


def draft(source: str, sinks: Sequence[str], tables: Sequence[str], name: str = "") -> Draft:
    """Look at a source and return the feed file that copies its tables into the sinks, which is FIRST_SINK if
    none is named. Without table patterns all tables are followed that the source's user may see.

    The URLs may have variables of the environment, as in a file. Nothing is changed. Raises ConfigError for
    mistakes in URLs and patterns, Retryable and Fatal if the source can't be asked.
    """
    urls = [source, *(sinks or [FIRST_SINK])]
    written = [
        with_variables(url, "source" if not number else "sink" if number == 1 else f"sink_{number}")
        for number, url in enumerate(urls)
    ]
    info = _look(_options(urls, tables or _EVERY_TABLE, name or DEFAULT_NAME))
    patterns = list(tables) or _schemas(info)
    name = name or _name(patterns)
    options = _options(urls, patterns, name)
    findings = check_feed(options)
    refused = {table: one for one in findings if one.level == "error" for table in one.tables}
    if refused:
        patterns += [f"!{exactly(*table.split('.', 1))}" for table in sorted(refused)]
        options = _options(urls, patterns, name)
        findings = [one for one in findings if one.level == "error" and one.tables] + check_feed(options)
    text = "\n".join(_lines(options, info, [url for url, _ in written], patterns, refused, findings)) + "\n"
    secrets = {key: secret for _, of_url in written for key, secret in of_url.items()}
    followed = sum(options.tables.matches(*table) for table in info.tables)
    return Draft(text, findings, followed, tuple(sorted(refused)), secrets)


def _options(urls: Sequence[str], patterns: Sequence[str], name: str) -> FeedOptions:
    source, *sinks = urls
    return feed_options(
        config.expand(
            {
                "name": name,
                "data_dir": _data_dir(name),
                "source": {"url": source, "tables": list(patterns)},
                "sink": [{"url": url} for url in sinks],
            }
        )
    )


def _data_dir(name: str) -> str:
    return f"{name}-data"


def _look(options: FeedOptions) -> SourceInfo:
    with closing(open_source(options, SystemClock())) as source:
        return source.look()


def _schemas(info: SourceInfo) -> list[str]:
    """Return a pattern for each schema with tables. Raises SourceError if there is none."""
    schemas = dict.fromkeys(schema for schema, _ in info.tables if schema != OWN_SCHEMA)
    if not schemas:
        raise SourceError(
            f"{info.source}: this user sees no table: create one, or GRANT SELECT on those that are there"
        )
    return [exactly(schema) for schema in schemas]


def _name(patterns: Sequence[str]) -> str:
    """Return a name for the feed: that of its schema, if it has one that can be a name."""
    first, *others = {pattern.partition(".")[0] for pattern in patterns if not pattern.startswith("!")} or {
        ""
    }
    return DEFAULT_NAME if others or not re.fullmatch(r"[A-Za-z0-9_-]{1,60}", first) else first


def _lines(
    options: FeedOptions,
    info: SourceInfo,
    urls: Sequence[str],
    patterns: Sequence[str],
    refused: Mapping[str, Finding],
    findings: Sequence[Finding],
) -> Iterator[str]:
    source, *sinks = urls
    yield "# A feed of tidemill. All keys and their values: tidemill schema."
    yield "#"
    yield "#   tidemill check FILE     rights, settings, matching tables; changes nothing"
    yield "#   tidemill run FILE       the existing rows, then every change, until it is stopped"
    yield "#   tidemill status FILE    state, position, lag"
    yield "#   tidemill diff FILE      rows that differ between source and target"
    problems = [one for one in findings if one.level != "ok" and not (one.level == "error" and one.tables)]
    if problems:
        yield "#"
        yield "# The check found:"
        for one in problems:
            yield from _comment(f"{one.level} {one.about}: {one.text}", "#   ")
            for statement in one.remedy:
                yield from _comment(f"run: {statement}", "#     ")
    yield ""
    yield f"name = {_string(options.name)}  # its checkpoints are kept under this name"
    yield f"data_dir = {_string(_data_dir(options.name))}  # status and scratch files"
    yield ""
    yield "[source]"
    of_source = [one for one in findings if one.about == "source" and one.level == "ok"]
    for one in of_source:
        if not one.tables:
            yield from _comment(one.text)
    yield from _comment(info.source)
    yield f"url = {_string(source)}"
    yield "# The last pattern that matches a table decides. They match now:"
    followed = [one for one in of_source if one.tables]
    for one in followed[:_LISTED]:
        yield from _comment(one.text.removeprefix("follows "), "#   ")
    if len(followed) > _LISTED:
        yield from _comment(f"and {len(followed) - _LISTED:,} more", "#   ")
    yield "tables = ["
    excluded = {f"!{exactly(*table.split('.', 1))}": one for table, one in refused.items()}
    for pattern in patterns:
        if pattern in excluded:
            yield from _comment(excluded[pattern].sentence, "    # ")
        yield f"    {_string(pattern)},"
    yield "]"
    yield from _further(options, info)
    for url in sinks:
        yield ""
        yield "[[sink]]"
        yield f"url = {_string(url)}"


def _further(options: FeedOptions, info: SourceInfo) -> Iterator[str]:
    """Yield the options of this kind of source that many feeds set, as comments."""
    kind = options.source.kind
    texts = docstrings(kind.options)
    declared = config.declaration(kind.options).options
    for name in kind.first_options:
        value = info.end if name == kind.start_option else declared[name].default
        yield ""
        yield from _comment(" ".join(texts[name].split()))
        yield f"# {name} = {_value(value)}"


def _value(value: object) -> str:
    return value if isinstance(value, str) and value.isdecimal() else json.dumps(value, ensure_ascii=False)


def _comment(text: str, begin: str = "# ") -> list[str]:
    """Return lines of a comment; names in it may have line breaks, which are escaped."""
    return wrap(
        printable(text),
        _WIDTH,
        initial_indent=begin,
        subsequent_indent=f"{begin}  " if begin != "# " else begin,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _string(text: str) -> str:
    r"""Return a basic string of TOML, which JSON's are but for \x7f, with its variables as they are."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", r"\u007f")
