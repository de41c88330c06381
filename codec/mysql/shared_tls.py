"""One TLS context for all connections of PyMySQL that have no options for TLS."""

from __future__ import annotations

import ssl
from typing import Any, Final

_contexts: Final[list[ssl.SSLContext]] = []


class SharedTls:
    """Base beside PyMySQL's Connection, which makes a context for each connection.

    It does so for a server without TLS too, and loads the system's certificates: 30 ms of CPU, in which other
    threads of Python stand still.
    """

    def _create_ssl_ctx(self, sslp: Any) -> ssl.SSLContext:
        if sslp:
            return self._own_context(sslp)
        if not _contexts:
            _contexts.append(self._own_context(sslp))
        return _contexts[0]

    def _own_context(self, sslp: Any) -> ssl.SSLContext:
        return super()._create_ssl_ctx(sslp)  # type: ignore[no-any-return, misc]
