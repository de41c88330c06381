"""Flags of commands that may ask a server, and its clients."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ..config.token import read_token
from ..errors import ConfigError
from .say import say

if TYPE_CHECKING:
    from ..client import Client
    from ..server.model.feeds import FeedSummary

TOKEN: Final = "TIDEMILL_TOKEN"

Server = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help='Ask the server at this URL, such as "http://127.0.0.1:8300", not a feed file'
    ),
]
Feed = Annotated[
    str, typer.Option("--feed", help="Name of the server's feed; required if it has several", metavar="NAME")
]
ServerToken = Annotated[
    Path | None,
    typer.Option("--token-file", help=f"File with the server's token; default: the variable {TOKEN}"),
]
CaFile = Annotated[
    Path | None, typer.Option("--ca-file", help="PEM file of the CA that signed the server's certificate")
]


def client_of(server: str, token_file: Path | None, ca_file: Path | None) -> Client:
    """Return a client of the server. Raises ConfigError."""
    from ..client import Client

    given = os.environ.get(TOKEN, "")
    return Client(
        server, read_token(token_file, "--token-file") if token_file is not None else given, ca_file=ca_file
    )


def reject_file(file: Path | None, data_dir: Path | None) -> None:
    """Raise ConfigError for a feed file or a data directory beside a server."""
    if file is not None or data_dir is not None:
        raise ConfigError("--server: give it without a feed file and without --data-dir; see --feed")


def say_feeds(feeds: Sequence[FeedSummary]) -> None:
    """Print a line for each feed."""
    for feed in feeds:
        lag = "" if feed.lag is None else f", lag {feed.lag:.1f} s"
        detail = f": {feed.detail}" if feed.detail else ""
        say(f"{feed.name}: {feed.state}{lag}, {feed.rows:,} rows{detail}")
    if not feeds:
        say("the server has no feeds")
