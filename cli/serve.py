"""The command serve: many feeds, with an HTTP API and a page."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ..actors import SystemClock
from ..config import parse_bytes
from ..engine.stopping import set_by_signals
from ..errors import ConfigError
from .say import say

if TYPE_CHECKING:
    from ..engine.feed import Feed
    from ..server.registry import Registry

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="Directory of feed files, NAME.toml")]
Http = Annotated[str, typer.Option("--http", metavar="HOST:PORT", help="Address of the API and the page")]
TokenFile = Annotated[
    Path | None,
    typer.Option(help="File with the tokens of clients: each line is a token, or a name and a token"),
]
TlsCert = Annotated[Path | None, typer.Option(help="PEM file of the server's certificate")]
TlsKey = Annotated[Path | None, typer.Option(help="PEM file of its key")]
AllowedHosts = Annotated[
    list[str] | None,
    typer.Option("--allowed-host", help="Additional host name of this server; repeatable"),
]

_SWITCH_SECONDS: Final = sys.getswitchinterval()
_SWITCH_FEED_SECONDS: Final = 5e-5
"""Threads that wait for the interpreter wake up so often to ask for it: those of a thousand feeds would do
little else."""
_LOOK_SECONDS: Final = 5.0
"""Pause between two looks at the number of feeds."""


def serve(
    directory: Directory = Path(),
    http: Http = "127.0.0.1:8300",
    token_file: TokenFile = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    allowed_host: AllowedHosts = None,
    sorter_memory: Annotated[
        str, typer.Option(help="Maximum memory for undelivered changes of all feeds together")
    ] = "256MiB",
) -> None:
    """Run all feeds of a directory, with an HTTP API and a page.

    Ctrl-C stops them and saves their checkpoints.

        tidemill serve feeds --http 127.0.0.1:8300
    """
    from ..server.registry import Registry

    registry = Registry(directory=directory, sorter_bytes=parse_bytes(sorter_memory, "--sorter-memory"))
    gc.freeze()  # as `run` does
    with (
        set_by_signals(Event()) as stopping,
        _serving(registry, http, token_file, tls_cert, tls_key, allowed_host or ()),
    ):
        while True:
            sys.setswitchinterval(max(_SWITCH_SECONDS, _SWITCH_FEED_SECONDS * len(registry.feeds())))
            if stopping.wait(_LOOK_SECONDS):
                break


@contextmanager
def window(
    document: Mapping[str, object],
    http: str,
    token_file: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    hosts: Sequence[str],
    feed: Feed,
) -> Iterator[None]:
    """Show one feed, which the caller runs, over HTTP. Raises ConfigError."""
    from ..config.secrets import masked
    from ..engine.options import FeedOptions
    from ..server.hosted import GivenFeed
    from ..server.registry import Registry

    clock = SystemClock()
    registry = Registry([GivenFeed(feed, masked(FeedOptions, document), clock)], clock=clock)
    with _serving(registry, http, token_file, tls_cert, tls_key, hosts):
        yield


@contextmanager
def _serving(
    registry: Registry,
    http: str,
    token_file: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    hosts: Sequence[str],
) -> Iterator[None]:
    from ..server.asgi import application
    from ..server.security import access
    from ..server.serving import HttpServer, Tls

    if (tls_cert is None) != (tls_key is None):
        raise ConfigError("--tls-cert, --tls-key: give both or neither")
    tls = Tls(cert=tls_cert, key=tls_key) if tls_cert is not None and tls_key is not None else None
    rules = access(http, token_file, hosts, has_tls=tls is not None)
    server = HttpServer(application(registry, rules), http, tls)
    with closing(server), registry, server:
        say(f"tidemill: {server.url}", err=True)
        yield
