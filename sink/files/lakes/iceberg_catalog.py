"""Catalogs of Iceberg tables: a SQL database, or a server of the REST protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    CommitStateUnknownException,
    ForbiddenError,
    NoSuchNamespaceError,
    NoSuchTableError,
    OAuthError,
    RESTError,
    ServerError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    TooManyRequestsError,
    UnauthorizedError,
)
from pyiceberg.exceptions import ValidationError as InvalidMetadata
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.typedef import Identifier
from requests import PreparedRequest, RequestException, Response, Session
from requests.adapters import HTTPAdapter
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, OperationalError, SQLAlchemyError

from ....config import Finding
from ....errors import ConfigError, Retryable, SinkError
from ..store import Store
from .iceberg_address import CatalogAddress
from .iceberg_io import STORE, StoreIO, location_of
from .iceberg_transaction import PROPERTIES

NAME: Final = "tidemill"
"""Name of the catalog in a SQL database, if no other is given."""
_SECONDS: Final = "tidemill.seconds"
_OWN_TABLES: Final = 2
"""Number of tables that a catalog in a SQL database makes for itself."""
_NO_ANSWER: Final = (
    CommitStateUnknownException,
    ServerError,
    ServiceUnavailableError,
    TooManyRequestsError,
    RequestException,
)
_DENIED: Final = (AuthorizationExpiredError, ForbiddenError, OAuthError, UnauthorizedError)


def check_database(address: CatalogAddress) -> None:
    """Raise ConfigError if SQLAlchemy or its driver can't be used for the URL of a database."""
    if not address.is_rest:
        try:
            make_url(address.url).get_dialect().import_dbapi()
        except (ArgumentError, ImportError) as error:
            raise ConfigError(f"catalog: SQLAlchemy can't open the database: {error}") from error


def open_catalog(address: CatalogAddress, store: Store, *, creates: bool = True) -> Catalog:
    """Return a catalog whose tables are in a store. Any thread may use it.

    `creates` is False to leave a SQL database without its tables. Raises as `explained` does.
    """
    properties: dict[str, Any] = {
        "uri": address.url,
        "py-io-impl": f"{StoreIO.__module__}.{StoreIO.__qualname__}",
        STORE: store,
    }
    options = address.options
    with explained(store.name):
        if address.is_rest:
            return _Rest(NAME, **properties, **_rest_properties(address))
        if creates and not options.catalog:
            _make_directory(address)
        properties |= {"warehouse": location_of(store), "init_catalog_tables": str(creates).lower()}
        for _ in range(_OWN_TABLES):
            try:
                return SqlCatalog(options.warehouse or NAME, **properties)
            except DBAPIError as error:
                if "already exists" not in str(error):  # as another process has made one at this moment
                    raise
        return SqlCatalog(options.warehouse or NAME, **properties)


def _make_directory(address: CatalogAddress) -> None:
    """Make the directory of the sink's URL, which has the catalog, and may have no tables."""
    directory = Path(str(make_url(address.url).database)).parent
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SinkError(f"{directory}: the catalog's directory can't be made: {error.strerror}") from error


def survey_catalog(address: CatalogAddress, store: Store) -> Finding:
    """Return a finding: does the catalog answer? Changes nothing; raises as `open_catalog` does."""
    path = make_url(address.url).database if address.url.startswith("sqlite:") else None
    if path is not None and not Path(path).exists():
        return Finding("ok", f"the catalog {path} will be made")
    catalog = open_catalog(address, store, creates=False)
    with explained(store.name), catalog:
        if isinstance(catalog, SqlCatalog):
            catalog.engine.connect().close()
        else:
            catalog.namespace_exists(address.options.namespace)
    return Finding("ok", "the catalog answers")


def create_namespace(catalog: Catalog, namespace: str) -> None:
    """Create a namespace if there is none. Raises as pyiceberg does."""
    try:
        catalog.create_namespace_if_not_exists((namespace,))
    except IntegrityError:
        if not catalog.namespace_exists((namespace,)):  # made for another table at this moment
            raise


def load_table(catalog: Catalog, identifier: Identifier) -> Table | None:
    """Return a table as it is now; None if there is none. Raises as pyiceberg does."""
    try:
        return catalog.load_table(identifier)
    except NoSuchTableError:
        return None


def create_table(
    catalog: Catalog,
    identifier: Identifier,
    schema: Schema,
    location: str,
    writer: str,
    number: int,
    partitions: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
    order: SortOrder = UNSORTED_SORT_ORDER,
) -> Table:
    """Make a table for the writer's commit of this number, and its namespace; columns get ids of the
    catalog's.

    Raises SinkError if somebody has made it meanwhile, else as pyiceberg does.
    """
    create_namespace(catalog, identifier[0])
    properties = {**PROPERTIES, writer: str(number - 1)}
    try:
        return catalog.create_table(identifier, schema, location, partitions, order, properties)
    except TableAlreadyExistsError as error:
        raise raced(identifier) from error


def raced(identifier: Identifier) -> SinkError:
    return SinkError(f"{'.'.join(identifier)}: another copy of the feed writes to it: stop one of them")


def _rest_properties(address: CatalogAddress) -> Mapping[str, Any]:
    options = address.options
    properties: dict[str, Any] = {
        _SECONDS: options.catalog_seconds,
        "warehouse": options.warehouse,
        "token": options.token,
        "credential": options.credential,
        "scope": options.scope,
    }
    if options.credential:
        properties["oauth2-server-uri"] = options.oauth_url or f"{address.url}/v1/oauth/tokens"
    if options.catalog_ca:
        properties["ssl"] = {"cabundle": options.catalog_ca}
    return {name: value for name, value in properties.items() if value}


class _Rest(RestCatalog):
    """A REST catalog whose requests have a limit of time, also those of its construction."""

    def _config_headers(self, session: Session) -> None:
        super()._config_headers(session)
        for scheme in ("http://", "https://"):
            session.mount(scheme, _Limited(self.properties[_SECONDS]))


class _Limited(HTTPAdapter):
    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds: Final = seconds

    def send(self, request: PreparedRequest, *arguments: Any, **named: Any) -> Response:
        return super().send(request, *arguments, **{**named, "timeout": self._seconds})


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Raise errors of a catalog as Retryable if it doesn't answer as it should, else as SinkError. `name` is
    the table's or the target's."""
    try:
        yield
    except _NO_ANSWER as error:
        raise Retryable(f"{name}: the catalog doesn't answer as it should: {error}") from error
    except _DENIED as error:
        raise SinkError(
            f"{name}: the catalog denies access: correct token or credential, or grant the right to create "
            f"namespaces and to create, read and change tables: {error}"
        ) from error
    except ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":
            raise Retryable(f"{name}: the catalog's answer isn't whole") from error
        raise SinkError(f"{name}: the catalog's answer can't be read: {_line(error)}") from error
    except InvalidMetadata as error:
        raise SinkError(f"{name}: the table's metadata can't be read: {_line(error)}") from error
    except OperationalError as error:
        if is_temporary(error):
            raise Retryable(f"{name}: the catalog's database doesn't answer: {error.orig}") from error
        raise SinkError(f"{name}: the catalog's database can't be used: {error.orig}") from error
    except SQLAlchemyError as error:
        raise SinkError(f"{name}: the catalog's database can't be used: {_line(error)}") from error
    except (RESTError, NoSuchNamespaceError) as error:
        raise SinkError(f"{name}: the catalog refuses a request: {error}") from error


def is_temporary(error: OperationalError) -> bool:
    """Return True for an error of a database that ends by itself: for SQLite, a lock that another one has."""
    return "locked" in str(error.orig) if type(error.orig).__module__ == "sqlite3" else True


def _line(error: Exception) -> str:
    """Return the first two lines of an error as one."""
    return " ".join(line.strip() for line in str(error).splitlines()[:2])
