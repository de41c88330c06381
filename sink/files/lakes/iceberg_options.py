"""Options of Iceberg tables and of their catalog."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

from ....errors import ConfigError
from ..options import ArchiveOptions, BucketOptions, Mode

_REST_ONLY = ("token", "credential", "scope", "oauth_url", "catalog_ca")


@dataclass(frozen=True, kw_only=True)
class CatalogOptions:
    """Options of a catalog. Raises ConfigError that names the accepted values."""

    location: str = ""
    """Place of the tables' files: a directory, or "s3://bucket/prefix"; empty: the directory of
    iceberg+sql."""
    catalog: str = field(default="", repr=False)
    """URL of the SQL database of iceberg+sql, as SQLAlchemy has it, such as
    "postgresql+psycopg://user:password@host/lake"; empty: catalog.db, of SQLite, in the URL's directory."""
    warehouse: str = ""
    """Warehouse of a REST catalog; or name of the catalog in a SQL database, which is "tidemill" if empty."""
    namespace: str = "tidemill"
    """Namespace of the tables `ddl` and `versions`; each feed of a catalog needs its own."""
    token: str = field(default="", repr=False)
    """Bearer token for a REST catalog."""
    credential: str = field(default="", repr=False)
    """OAuth2 client credentials for a REST catalog, as "client:secret"."""
    scope: str = ""
    """Scope of the OAuth2 token; empty: "catalog"."""
    oauth_url: str = ""
    """URL of the OAuth2 token endpoint; empty: the catalog's own."""
    catalog_ca: str = ""
    """File of the CA certificates of a REST catalog; empty: those of the system."""
    catalog_seconds: Annotated[float, Meta(ge=1)] = 30.0
    """Time without an answer of a REST catalog after which a request is given up, and sent again later."""
    keep_snapshots: Annotated[int, Meta(ge=1)] = 100
    """Number of a table's latest snapshots that are kept for time travel. Each commit makes one, and takes
    the longer the more there are."""

    def __post_init__(self) -> None:
        if self.token and self.credential:
            raise ConfigError("token and credential: give one of them")
        if not self.credential and (self.scope or self.oauth_url):
            raise ConfigError("scope and oauth_url go with credential")
        if not self.namespace:
            raise ConfigError('namespace: a name, for instance "tidemill"')

    @property
    def rest_only(self) -> list[str]:
        """Names of given options that only a REST catalog has."""
        return [name for name in _REST_ONLY if getattr(self, name)]


@dataclass(frozen=True, kw_only=True)
class IcebergOptions(CatalogOptions, ArchiveOptions):
    """Options of Iceberg tables in a directory. Raises ConfigError that names the accepted values."""

    layout: Literal["iceberg"] = "iceberg"
    """An Iceberg table for each table of the source."""
    mode: Mode = "history"
    """history: every change of each table. copy: the present rows of each table by its primary key, with the
    columns of the source."""

    @property
    def is_copy(self) -> bool:
        return self.mode == "copy"

    def __post_init__(self) -> None:
        ArchiveOptions.__post_init__(self)
        CatalogOptions.__post_init__(self)


@dataclass(frozen=True, kw_only=True)
class IcebergBucketOptions(CatalogOptions, BucketOptions):
    """Options of Iceberg tables in an S3-compatible store. Raises ConfigError that names the accepted
    values."""

    format: Literal["parquet"] = "parquet"
    """Format of the files."""
    layout: Literal["iceberg"] = "iceberg"
    """An Iceberg table for each table of the source."""
    mode: Mode = "history"
    """history: every change of each table. copy: the present rows of each table by its primary key, with the
    columns of the source."""

    @property
    def is_copy(self) -> bool:
        return self.mode == "copy"

    def __post_init__(self) -> None:
        BucketOptions.__post_init__(self)
        CatalogOptions.__post_init__(self)
