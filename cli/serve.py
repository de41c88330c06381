"""The command serve: many feeds, with an HTTP API and a page."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Annotated

import typer

from ..engine.stopping import set_by_signals
from ..errors import ConfigError
from .say import say

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
    typer.Option("--allowed-host", help="Further name by which clients reach this server; repeatable"),
]


def add_commands(app: typer.Typer) -> None:
    app.command()(serve)


def serve(
    directory: Directory = Path(),
    http: Http = "127.0.0.1:8300",
    token_file: TokenFile = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    allowed_host: AllowedHosts = None,
) -> None:
    """Run all feeds of a directory, with an HTTP API and a page.

    Ctrl-C stops them and saves their checkpoints.
    """
    from ..server.app import application
    from ..server.registry import Registry
    from ..server.security import access
    from ..server.serving import HttpServer, Tls

    if (tls_cert is None) != (tls_key is None):
        raise ConfigError("--tls-cert, --tls-key: give both or neither")
    tls = Tls(cert=tls_cert, key=tls_key) if tls_cert is not None and tls_key is not None else None
    given = access(http, token_file, allowed_host or (), has_tls=tls is not None)
    registry = Registry(directory=directory)
    with (
        set_by_signals(Event()) as stopping,
        HttpServer(application(registry, given), http, tls) as server,
        registry,
    ):
        say(f"tidemill: {server.url}", err=True)
        stopping.wait()
