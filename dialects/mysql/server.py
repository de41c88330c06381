"""The address of a MySQL or MariaDB server, and how to log in."""

from __future__ import annotations

from dataclasses import dataclass, field
from socket import socket
from typing import Annotated

from msgspec import Meta

from ...codec.mysql.tls import TlsFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsOptions:
    """TLS of connections to a MariaDB or MySQL server."""

    ssl_ca: str | None = None
    """File of the certificate authority that must have signed the server's certificate. Without it, TLS is
    used if the server offers it, and nothing is verified."""
    ssl_cert: str | None = None
    """File of the client certificate, if the server requires one; with `ssl_key`."""
    ssl_key: str | None = None
    """File of its key."""
    ssl_verify_identity: bool = True
    """With `ssl_ca`, verify that the server's certificate is for its host; false accepts every certificate
    that the authority signed."""

    @property
    def tls(self) -> TlsFiles:
        """The files, and the checks of the server's certificate. Raises ConfigError for conflicts."""
        return TlsFiles(
            ca=self.ssl_ca, cert=self.ssl_cert, key=self.ssl_key, verify_identity=self.ssl_verify_identity
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions(TlsOptions):
    """A MariaDB or MySQL server."""

    host: str = "127.0.0.1"
    """Name or address of the server; usually in the URL, as are port, user and password."""
    port: Annotated[int, Meta(ge=1, le=65535)] = 3306
    """Port of the server."""
    user: str = "root"
    """User to log in."""
    password: str = field(default="", repr=False)
    """Password of the user."""
    timeout_seconds: Annotated[float, Meta(ge=1)] = 30.0
    """Timeout for connecting and for the answer to a statement."""

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def dial(self) -> socket | None:
        """Return a socket that is connected to the server; None: the driver connects."""
        return None
