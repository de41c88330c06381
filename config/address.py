"""Network addresses that stay on this machine."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address

from ..errors import ConfigError


@lru_cache(64)  # a server asks for each request, and parsing takes as long as an answer
def is_loopback(host: str) -> bool:
    """True for localhost and for an address of the loopback interface."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_and_port(listen: str) -> tuple[str, int]:
    """Return host and port of an address to listen at. Raises ConfigError."""
    host, _, port = listen.rpartition(":")
    if not host or not port.isascii() or not port.isdecimal() or int(port) > 0xFFFF:
        raise ConfigError(f'listen: expected host:port, such as "127.0.0.1:8815", not {listen!r}')
    return host.removeprefix("[").removesuffix("]"), int(port)
