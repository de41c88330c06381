"""The stop of a reader that may be waiting for its server."""

from __future__ import annotations

from ...dialects.mysql.client import Session
from ...dialects.mysql.result import cut


class StopSignal:
    """Tells a thread to stop reading; it doesn't wait for its server any longer then."""

    def __init__(self) -> None:
        self.is_set = False
        self._session: Session | None = None

    def set(self) -> None:
        """Cut the watched session. Called by another thread; idempotent."""
        self.is_set = True
        self._cut()

    def watch(self, session: Session) -> None:
        """Have `set` cut this session, in place of the former one; at once if it was called before."""
        self._session = session
        if self.is_set:
            self._cut()

    def _cut(self) -> None:
        if (session := self._session) is not None:
            cut(session)
