"""How the source is reached and read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta


@dataclass(frozen=True, slots=True, kw_only=True)
class MysqlOptions:
    """A MariaDB server to follow."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=1, le=65535)] = 3306
    user: str = "root"
    password: str = ""
    ssl_ca: str | None = None
    """File of a certificate authority: the server's certificate must be signed by it. Without one TLS
    is used if the server offers it, and nothing is verified."""
    ssl_cert: str | None = None
    """File of our certificate, if the server wants one; with `ssl_key`."""
    ssl_key: str | None = None
    ssl_verify_identity: bool = False
    """The server's certificate must also be for `host`."""
    server_id: Annotated[int, Meta(ge=0, le=0xFFFFFFFF)] = 0
    """Ours, among the server's replicas: two with the same id cut each other off. 0: one that hardly
    another replica has, made from this process's id and host name."""
    snapshot: bool = True
    """Load the tables before following them. False: only what changes from now on."""
    position: str = ""
    """Where to begin instead, without a snapshot and a checkpoint: "mysql-bin.000003:4711"."""
    chunk_rows: Annotated[int, Meta(ge=1)] = 20_000
    """A table with a primary key of integers is loaded in transactions of this many rows; any other
    one in a single one."""
    max_batch_bytes: Annotated[int, Meta(ge=1)] = 1 << 20  # 1 MiB
    """A transaction larger than this is sent on in parts, as it comes."""
    heartbeat_seconds: Annotated[float, Meta(ge=0.01)] = 1.0
    """How often an idle server says that it is alive; after three of them missed it is taken for gone."""
    timeout_seconds: Annotated[float, Meta(ge=1)] = 30.0
    """For connecting and for an answer to a statement."""
    retry_first_seconds: Annotated[float, Meta(ge=0.01)] = 0.2
    """The pause before connecting again; each further one is twice as long ..."""
    retry_longest_seconds: Annotated[float, Meta(ge=0.01)] = 15.0
    """... up to this."""

    @property
    def loads(self) -> bool:
        """Whether it begins with a snapshot, without a checkpoint."""
        return self.snapshot and not self.position

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"
