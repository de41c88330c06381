"""Flags common to several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .. import config
from ..errors import ConfigError

RequiredFile = Annotated[Path, typer.Argument(help="feed.toml")]
FeedFile = Annotated[Path | None, typer.Argument(help="feed.toml; or give --source, --sink and --table")]
Source = Annotated[
    str | None, typer.Option(help="mysql://user:password@host:port or tikv://pd1:2379,pd2:2379")
]
Sinks = Annotated[list[str] | None, typer.Option("--sink", help="target URL; may be repeated")]
Tables = Annotated[
    list[str] | None, typer.Option("--table", help='pattern such as "shop.*"; may be repeated')
]
Name = Annotated[str | None, typer.Option(help="the feed's name: checkpoints are kept under it")]
DataDir = Annotated[Path | None, typer.Option(help="where status, checkpoints and scratch files go")]
Json = Annotated[bool, typer.Option("--json", help="one JSON object a line, for machines")]


def feed_tables(
    file: Path | None,
    source: str | None,
    sinks: list[str] | None,
    tables: list[str] | None,
    name: str | None,
    data_dir: Path | None,
) -> dict[str, Any]:
    """Return the file's tables, overridden by flags. Raises ConfigError."""
    found = config.read(file) if file is not None else {}
    if source is not None or tables:
        section = found.setdefault("source", {})
        if isinstance(section, list):
            raise ConfigError("--source, --table: the file has several [[source]] sections: edit them")
        if source is not None:
            section["url"] = source
        if tables:
            section["tables"] = tables
    if sinks:
        found["sink"] = [{"url": url} for url in sinks]
    if name is not None:
        found["name"] = name
    if data_dir is not None:
        found["data_dir"] = str(data_dir)
    return found


def directory_of(file: Path | None, data_dir: Path | None) -> Path:
    """Return a feed's data directory, for commands that only read there: other keys of the file may name
    variables that aren't set here. Raises ConfigError."""
    from ..engine.options import feed_directory

    found = config.read(file, ("data_dir",)) if file is not None else {}
    return data_dir if data_dir is not None else feed_directory(found)
