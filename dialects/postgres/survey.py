"""Preflight checks of a PostgreSQL target."""

from __future__ import annotations

from collections.abc import Iterator

from ...config import Finding
from ...errors import SinkError, TidemillError
from ...events import Table
from ..address import Address
from ..database import OWN_SCHEMA
from ..options import PostgresOptions
from .postgres import PostgresDatabase
from .session import PostgresSession
from .text import name


def survey(address: Address, options: PostgresOptions) -> Iterator[Finding]:
    """Yield findings about a database; nothing is created."""
    target = PostgresDatabase(address, "", options)
    session = target.session
    try:
        session.connect()
        yield Finding("ok", f"{address.host or 'localhost'} answers")
        yield from _rights(session, options.schema)
    except TidemillError as error:
        yield Finding("error", str(error))
    except Exception as error:
        if (explained := target.explain(error, "connecting")) is None:
            raise
        yield Finding("error", str(explained))
    finally:
        session.close()


def misfits(options: PostgresOptions, table: Table) -> Iterator[Finding]:
    """Yield an error for each name of a table that PostgreSQL would cut off."""
    of = f"table {table.full_name}"
    names = [(options.schema or table.schema, of), (table.name, of)]
    names += [(column.name, f"{of}, column {column.name}") for column in table.columns]
    for identifier, place in names:
        try:
            name(identifier, place)
        except SinkError as error:
            yield Finding("error", str(error))


def _rights(session: PostgresSession, schema: str) -> Iterator[Finding]:
    """Yield findings about privileges; `schema` is the tables' target, empty: their own schemas."""
    ((user, is_standby, read_only, can_create),) = session.rows(
        "SELECT current_user, pg_is_in_recovery(), current_setting('default_transaction_read_only') = 'on', "
        "has_database_privilege(current_database(), 'CREATE')"
    )
    if is_standby or read_only:
        yield Finding("error", "the server is a standby" if is_standby else f"{user} may only read")
    for one in [schema] if schema else [OWN_SCHEMA]:
        query = "SELECT has_schema_privilege(oid, 'CREATE, USAGE') FROM pg_namespace WHERE nspname = %s"
        rows = session.rows(query, one)
        if rows and not rows[0][0]:
            yield Finding("error", f"{user} has no right to create tables in schema {one}")
        if not rows and not can_create:
            yield Finding("error", f"{user} has no right to create schema {one}")
    if not schema and not can_create:
        yield Finding("warning", f"{user} has no right to create schemas: those of the source must be there")
