"""TLS of connections to MariaDB and MySQL, and passwords in clear."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from ...errors import ConfigError

_IN_CLEAR: Final = (b"mysql_clear_password", b"dialog")
"""Plugins by which the client sends the password as it is."""


class TlsFiles(Struct, frozen=True, kw_only=True):
    """Files of TLS, and the checks of the server's certificate. Raises ConfigError for conflicts."""

    ca: str | None = None
    """The authority that must have signed the server's certificate; without it nothing is verified."""
    cert: str | None = None
    key: str | None = None
    verify_identity: bool = True
    """With `ca`, verify that the certificate is for the host name."""

    def __post_init__(self) -> None:
        if self.key is not None and self.cert is None:
            raise ConfigError("ssl_cert: missing: ssl_key is the key of that certificate")

    def context(self) -> ssl.SSLContext | None:
        """Return the context for a connection that requires TLS; None without files: TLS is optional.

        Raises ConfigError if a file can't be used.
        """
        if self.ca is None and self.cert is None:
            return None
        context = _unverified()
        if self.ca is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.check_hostname = self.verify_identity
            with _blaming("ssl_ca", self.ca):
                context.load_verify_locations(self.ca)
        if self.cert is not None:
            with _blaming("ssl_cert or ssl_key", self.cert):
                context.load_cert_chain(self.cert, self.key)
        return context


class Guarded:
    """Base beside PyMySQL's Connection: encrypts if the server can, and guards the password."""

    _sock: socket.socket | None
    host: str

    @property
    def tls_warning(self) -> str:
        """Return what an attacker on the way to the server could do; empty if nothing, or on this machine."""
        if self._is_verified or self._is_local:
            return ""
        if isinstance(self._sock, ssl.SSLSocket):
            return (
                f"the certificate of {self.host} isn't verified: whoever is on the way can read and change "
                "everything: give ssl_ca"
            )
        return (
            f"{self.host} offers no TLS: whoever is on the way can read and change everything: configure "
            "TLS on the server, and give ssl_ca"
        )

    @property
    def _is_verified(self) -> bool:
        return isinstance(self._sock, ssl.SSLSocket) and self._sock.context.verify_mode == ssl.CERT_REQUIRED

    @property
    def _is_local(self) -> bool:
        if self._sock is None or self._sock.family == socket.AF_UNIX:
            return True
        address = str(self._sock.getpeername()[0])
        return address == "::1" or address.startswith("127.")

    def _create_ssl_ctx(self, sslp: object) -> ssl.SSLContext:
        # PyMySQL's context for a server that needn't have TLS loads the system's certificates: 20 ms of CPU
        # in each connection, for a context that doesn't verify.
        return super()._create_ssl_ctx(sslp) if sslp else _unverified()  # type: ignore[misc]

    def _process_auth(self, plugin_name: bytes, auth_packet: object, handler: object = None) -> object:
        is_socket = self._sock is not None and self._sock.family == socket.AF_UNIX
        if plugin_name in _IN_CLEAR and not self._is_verified and not is_socket:
            raise ConfigError(
                f"{self.host}: the server asks for the password in clear ({plugin_name.decode()}), which is "
                "sent over verified TLS only: give ssl_ca, or another authentication plugin to the user"
            )
        return super()._process_auth(plugin_name, auth_packet, handler)  # type: ignore[misc]


def rejected_certificate(error: BaseException) -> bool:
    """True for an error of PyMySQL's about a certificate that isn't accepted."""
    return isinstance(getattr(error, "original_exception", None), ssl.SSLCertVerificationError)


@contextmanager
def _blaming(option: str, file: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{option}: {file} can't be used: {error.strerror or error}") from error


def _unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
