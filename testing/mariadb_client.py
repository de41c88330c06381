"""A session on a private server."""

from __future__ import annotations

from ..events import Row
from .private_server import PrivateServer


class Client:
    """A session on a database of the server."""

    def __init__(self, server: PrivateServer, database: str) -> None:
        self.server = server
        self.database = database
        self.reconnect()

    def reconnect(self) -> None:
        self._connection = self.server.connect(database=self.database)

    def __call__(self, *statements: str) -> list[Row]:
        """Run statements; the rows of the last one."""
        with self._connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def close(self) -> None:
        self._connection.close()
