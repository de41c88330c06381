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
    target = PostgresDatabase(address, options, "")
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
    ((user, role, database, is_standby, read_only, can_create),) = session.rows(
        "SELECT current_user, quote_ident(current_user), quote_ident(current_database()), "
        "pg_is_in_recovery(), current_setting('default_transaction_read_only') = 'on', "
        "has_database_privilege(current_database(), 'CREATE')"
    )
    to_create = (f"GRANT CREATE ON DATABASE {database} TO {role}",)
    if is_standby:
        yield Finding("error", "the server is a standby: name its primary in the URL")
    elif read_only:
        writes = f"ALTER ROLE {role} SET default_transaction_read_only = off"
        yield Finding("error", f"{user} may only read", remedy=(writes,))
    for one in [schema] if schema else [OWN_SCHEMA]:
        query = (
            "SELECT has_schema_privilege(oid, 'CREATE, USAGE'), quote_ident(nspname) "
            "FROM pg_namespace WHERE nspname = %s"
        )
        rows = session.rows(query, one)
        if rows and not rows[0][0]:
            grant = f"GRANT CREATE, USAGE ON SCHEMA {rows[0][1]} TO {role}"
            yield Finding("error", f"{user} has no right to create tables in schema {one}", remedy=(grant,))
        if not rows and not can_create:
            yield Finding("error", f"{user} has no right to create schema {one}", remedy=to_create)
    if not schema and not can_create:
        text = f"{user} has no right to create schemas: those of the source must be there"
        yield Finding("warning", text, remedy=to_create)
