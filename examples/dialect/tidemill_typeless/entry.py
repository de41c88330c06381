"""The registry entry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidemill.config import Finding
from tidemill.config.survey import writable_file
from tidemill.dialects.address import parsed, path_of
from tidemill.dialects.database import Database
from tidemill.dialects.dialect import Dialect, DialectTraits
from tidemill.dialects.options import RowOptions
from tidemill.dialects.read import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class TypelessOptions(RowOptions):
    """Options of the section of a feed.toml, beside those of every SQL database."""

    separator: str = "$"
    """Text between the schema and the name of a source's table."""


def _file(url: str) -> Path:
    return path_of(parsed(url), "a typeless sink needs a file: typeless:///here.db")


def _connect(url: str, options: TypelessOptions, feed: str, busy_seconds: float | None) -> Database:
    from .database import TypelessDatabase

    return TypelessDatabase(_file(url), options, feed, busy_seconds)


def _read(url: str, options: TypelessOptions, feed: str) -> Reader | None:
    from .read import TypelessReader

    return TypelessReader(_file(url), options, feed) if _file(url).exists() else None


def _survey(url: str, options: TypelessOptions) -> Iterator[Finding]:
    yield writable_file(_file(url))


TYPELESS: Final = Dialect(
    name="Typeless",
    schemes=("typeless",),
    examples=("typeless:///file",),
    options=TypelessOptions,
    connect=_connect,
    read=_read,
    survey=_survey,
    traits=DialectTraits(is_local=True),
)
