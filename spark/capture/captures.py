"""The captures that a query reads from, and its access to them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...config import Form, key_of
from ...config.token import read_token
from ...errors import ConfigError
from ..captures_options import CapturesOptions
from .access import Access
from .client import NOBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class Captures:
    """A query's captures: addresses, access and lease."""

    addresses: tuple[str, ...]
    lease: str = ""
    """The query's lease, the same over its whole life; its driver acknowledges with it."""
    access: Access = NOBODY
    wait_seconds: float = 20.0
    """Maximum time that a task waits for changes that a capture hasn't read yet."""


def captures_of(options: CapturesOptions, form: Form, where: str = "") -> Captures | None:
    """Return the captures of the options; None if they name none.

    Called in the driver, which has the token and certificate files and sends their content to the tasks.
    Raises ConfigError, worded by `form` for options at `where`.
    """
    if not options.capture:
        return None

    def named(field: str) -> str:
        return form.path(where, key_of(type(options), field))

    token, ca = options.capture_token_file, options.capture_ca_file
    access = Access(
        token=read_token(token, named("capture_token_file")) if token else "",
        tls=options.capture_tls,
        ca=_read_ca(ca, named("capture_ca_file")) if ca else b"",
    )
    for address in options.capture:
        access.check(address)
    return Captures(
        addresses=options.capture,
        access=access,
        wait_seconds=options.capture_wait_seconds,
    )


def _read_ca(path: Path, option: str) -> bytes:
    try:
        pem = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{option}: {path}: {error.strerror}") from None
    if b"-----BEGIN CERTIFICATE-----" not in pem:
        raise ConfigError(f"{option}: {path}: expected certificates as PEM")
    return pem
