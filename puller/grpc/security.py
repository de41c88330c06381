"""TLS for connections to PD and the stores."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...errors import ConfigError

if TYPE_CHECKING:
    import grpc


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """PEM files, as the components of a TiDB cluster use them. Without any, connections are not encrypted."""

    ca_path: Path | None = None
    """File of the certificate authorities; one of them must have signed the server's certificate."""
    cert_path: Path | None = None
    """File of the client certificate, for clusters that require one; with `key_path`."""
    key_path: Path | None = None

    def credentials(self) -> grpc.ChannelCredentials | None:
        """Return the channel credentials; None without TLS.

        Reads the files on each call. Raises ConfigError naming the option whose file can't be used.
        """
        if self.ca_path is None:
            for name, path in (("cert_path", self.cert_path), ("key_path", self.key_path)):
                if path is not None:
                    raise ConfigError(
                        f"source.{name} is set without ca_path: TLS needs the cluster's CA as well"
                    )
            return None
        import grpc  # takes long, and a program that only reads the options has no use for it

        authorities = _read("ca_path", self.ca_path)
        _check_authorities(self.ca_path)
        if self.cert_path is None and self.key_path is None:
            return grpc.ssl_channel_credentials(authorities)
        if self.cert_path is None or self.key_path is None:
            missing = "cert_path" if self.cert_path is None else "key_path"
            raise ConfigError(f"source.{missing} is missing: set both cert_path and key_path")
        certificate, key = _read("cert_path", self.cert_path), _read("key_path", self.key_path)
        _check_pair(self.cert_path, self.key_path)
        return grpc.ssl_channel_credentials(authorities, key, certificate)

    def hint(self, details: str) -> str:
        """Return a hint why a connection was closed during its handshake; "" for other errors.

        A server that refuses the handshake only closes the connection, as one that shuts down does.
        """
        if "failed to connect" not in details or not _CLOSED.search(details):
            return ""
        if self.ca_path is None:
            return "; if the cluster requires TLS, set ca_path"
        if self.cert_path is None:
            return "; if the cluster requires a client certificate, set cert_path and key_path"
        return "; the cluster may have rejected the client certificate (cert_path)"


def _read(name: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"source.{name} = {str(path)!r} can't be read: {error.strerror}") from error


def _check_authorities(path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(path)
    except ssl.SSLError as error:
        raise ConfigError(f"source.ca_path = {str(path)!r} contains no certificate in PEM format") from error


def _check_pair(certificate: Path, key: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        # an empty password: without it, OpenSSL would prompt for a key's password on the terminal
        context.load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ConfigError(
                f"source.key_path = {str(key)!r} is not the key of cert_path = {str(certificate)!r}"
            ) from error
        raise ConfigError(
            f"source.cert_path = {str(certificate)!r} and key_path = {str(key)!r} are not "
            "a certificate and a key without password in PEM form"
        ) from error


_CLOSED: Final = re.compile(r"Socket closed|Connection reset|End of TCP stream|Broken pipe", re.IGNORECASE)

_TROUBLES: Final = (
    ("CERTIFICATE_VERIFY_FAILED", "its certificate is not signed by an authority in ca_path, or has expired"),
    ("Hostname Verification", "its certificate is for another host name or address"),
    ("Peer name", "its certificate is for another host name or address"),
    ("WRONG_VERSION_NUMBER", "it doesn't use TLS: remove ca_path, or enable TLS on the cluster"),
    ("CERTIFICATE_REQUIRED", "it requires a client certificate: set cert_path and key_path"),
    ("BAD_CERTIFICATE", "it rejects the client certificate, or requires one: check cert_path and key_path"),
    ("UNKNOWN_CA", "it doesn't know the authority that signed the client certificate (cert_path)"),
    ("CERTIFICATE_EXPIRED", "the client certificate (cert_path) has expired"),
)


def handshake_advice(details: str) -> str | None:
    """Return advice about a failed TLS handshake, from gRPC's details; None if the handshake didn't fail."""
    for sign, sentence in _TROUBLES:
        if sign in details:
            return sentence
    if re.search(r"handshake|\bSSL", details, re.IGNORECASE):
        return "the TLS handshake failed; ca_path, cert_path and key_path must fit the cluster"
    return None
