"""Flags common to several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import config
from ..errors import ConfigError

RequiredFile = Annotated[Path, typer.Argument(metavar="FEED.TOML", help="Feed file")]
FeedFile = Annotated[
    Path | None,
    typer.Argument(metavar="FEED.TOML", help="Feed file; or use flags such as --source and --table"),
]
DirectoryFile = Annotated[
    Path | None, typer.Argument(metavar="FEED.TOML", help="Feed file; or use --data-dir")
]
Source = Annotated[
    str | None,
    typer.Option(help="Source URL, such as mysql://user:password@host:port or tikv://pd1:2379,pd2:2379"),
]
Sinks = Annotated[
    list[str] | None,
    typer.Option(
        "--sink", help="Target URL, such as mysql://user:password@host/ or kafka://host:9092; repeatable"
    ),
]
Tables = Annotated[
    list[str] | None,
    typer.Option("--table", help='Pattern of tables to follow, such as "shop.*"; repeatable'),
]
Name = Annotated[str | None, typer.Option(help="Name of the feed, under which checkpoints are stored")]
DataDir = Annotated[Path | None, typer.Option(help="Directory for status, checkpoints and scratch files")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line")]


def feed_tables(
    file: Path | None,
    source: str | None,
    sinks: list[str] | None,
    tables: list[str] | None,
    name: str | None,
    data_dir: Path | None,
) -> dict[str, object]:
    """Return the file's tables, overridden by flags. Raises ConfigError."""
    document = config.read(file) if file is not None else {}
    if source is not None or tables:
        section = document.setdefault("source", {})
        if isinstance(section, list):
            raise ConfigError("--source, --table: the file has several [[source]] sections: edit them")
        if source is not None:
            section["url"] = source
        if tables:
            section["tables"] = tables
    if sinks:
        document["sink"] = [{"url": url} for url in sinks]
    if name is not None:
        document["name"] = name
    if data_dir is not None:
        document["data_dir"] = str(data_dir)
    return document


def directory_of(file: Path | None, data_dir: Path | None) -> Path:
    """Return a feed's data directory, for commands that only read there: other keys of the file may name
    variables that aren't set here. Raises ConfigError."""
    from ..engine.options import StoreOptions

    document = config.read(file, ("data_dir",)) if file is not None else {}
    return data_dir if data_dir is not None else config.build(StoreOptions, document, "").data_dir
