"""How the source is reached and read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MysqlOptions:
    """A MariaDB server to follow."""

    host: str = "127.0.0.1"
    port: int = 3306
    user: str = "root"
    password: str = ""
    server_id: int = 0
    """Ours, among the server's replicas: two with the same id cut each other off. 0: one made from
    this process's id and host name."""
    ssl_ca: str | None = None
    """File of the certificate authority; with one, the server's certificate is verified. Without
    one TLS is used if the server offers it."""
    ssl_cert: str | None = None
    ssl_key: str | None = None
    ssl_verify_identity: bool = False
    """The certificate must be for `host`, too."""
    snapshot: bool = True
    """Load the tables before following. False: only what changes from now on, or from `position`."""
    position: str = ""
    """Where to begin without a checkpoint and a snapshot, such as "mysql-bin.000003:4711"; empty:
    at the binlog's end."""
    chunk_rows: int = 20_000
    """A table with a primary key of integers is loaded in transactions of this many rows; any other
    one in a single one."""
    max_batch_bytes: int = 1 << 20  # 1 MiB
    """Of a larger transaction, parts of about this size are handed on before it is complete."""
    heartbeat_seconds: float = 1.0
    """How often an idle server says that it is alive. Without three of them it is taken for gone."""
    timeout_seconds: float = 30.0
    """For connecting and for an answer to a statement."""
    retry_seconds: tuple[float, float] = (0.2, 15.0)
    """The first and the longest pause between attempts to connect."""

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"
