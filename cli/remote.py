"""Commands that may ask a server, in place of a feed file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, get_type_hints

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


class ServerFeed:
    """The feed of a server that a command asks about."""

    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self._name = name

    @cached_property
    def name(self) -> str:
        """The name that was given, or that of the server's only feed. Raises ConfigError."""
        return self.client.only_feed(self._name)

    def several(self) -> list[FeedSummary] | None:
        """Return the server's feeds if they aren't one and none is named."""
        feeds = None if self._name else self.client.feeds()
        return None if feeds is None or len(feeds) == 1 else feeds

    @property
    def state(self) -> str:
        return self.client.feed(self.name).feed.state


def may_ask_a_server(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the flags of a server; its argument `server_feed` is None without --server.

    Raises ConfigError for a server beside a feed file or a data directory.
    """

    def call(
        server: str | None, feed: str, token_file: Path | None, ca_file: Path | None, **given: Any
    ) -> None:
        server_feed = None
        if server is not None:
            if given.get("file") is not None or given.get("data_dir") is not None:
                raise ConfigError("--server: give it without a feed file and without --data-dir; see --feed")
            server_feed = ServerFeed(_client(server, token_file, ca_file), feed)
        command(**given, server_feed=server_feed)

    hints = get_type_hints(command, include_extras=True)
    own = [
        one.replace(annotation=hints[name])
        for name, one in signature(command).parameters.items()
        if name != "server_feed"
    ]
    flags = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=flag)
        for name, flag, default in (
            ("server", Server, None),
            ("feed", Feed, ""),
            ("token_file", ServerToken, None),
            ("ca_file", CaFile, None),
        )
    ]
    call.__name__, call.__doc__ = command.__name__, command.__doc__
    call.__signature__ = Signature([*own, *flags])  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in (*own, *flags)}
    return call


def _client(server: str, token_file: Path | None, ca_file: Path | None) -> Client:
    from ..client import Client

    token = os.environ.get(TOKEN, "")
    return Client(
        server, read_token(token_file, "--token-file") if token_file is not None else token, ca_file=ca_file
    )


def say_feeds(feeds: Sequence[FeedSummary]) -> None:
    """Print a line for each feed."""
    for feed in feeds:
        lag = "" if feed.lag is None else f", lag {feed.lag:.1f} s"
        detail = f": {feed.detail}" if feed.detail else ""
        say(f"{feed.name}: {feed.state}{lag}, {feed.rows:,} rows{detail}")
    if not feeds:
        say("the server has no feeds")
