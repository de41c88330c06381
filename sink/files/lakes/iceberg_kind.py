"""Registry entries for Iceberg tables, in a directory or an object store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ....config import Finding
from ....config.survey import writable_directory
from ....events import Table
from ...kind import ByFiles, SinkContext, SinkKind
from ...sink import Sink
from ..kinds import COPIES_NOT_ON_SPARK, DIRECTORY, begins_at, is_copy, storage_sink
from .iceberg_address import REST_EXAMPLE, SQL_EXAMPLE, IcebergAddress, iceberg_of, is_in_bucket
from .iceberg_options import IcebergBucketOptions, IcebergOptions

if TYPE_CHECKING:
    from ..store import Store
    from ..target import FilesTarget


def store_of(address: IcebergAddress) -> Store:
    """Return the store of the tables' files, not connected yet."""
    if isinstance(address.options, IcebergBucketOptions):
        from ..bucket import Bucket

        assert not isinstance(address.place, Path)
        return Bucket(address.place, address.options)
    from ..directory import Directory

    assert isinstance(address.place, Path)
    return Directory(address.place)


def _target(
    url: str, options: IcebergOptions | IcebergBucketOptions, scratch: Path | None = None
) -> FilesTarget:
    from ..target import files_target

    address = iceberg_of(url, options)
    return files_target(store_of(address), address.options, address.catalog, scratch)


def _open(url: str, options: IcebergOptions | IcebergBucketOptions, context: SinkContext) -> Sink:
    return storage_sink(_target(url, options, context.scratch), context)


def _survey(
    url: str, options: IcebergOptions | IcebergBucketOptions, context: SinkContext
) -> Iterator[Finding]:
    from .iceberg_catalog import survey_catalog

    address = iceberg_of(url, options)
    target = _target(url, options)
    if isinstance(address.place, Path):
        yield writable_directory(address.place)
    else:
        target.store.check()
        yield Finding("ok", f"bucket {address.place.bucket!r} is there")
    yield survey_catalog(address.catalog, target.store)
    yield begins_at(target, context)


def _misfits(_: IcebergOptions | IcebergBucketOptions, table: Table) -> Iterator[Finding]:
    from .copies.columns import keyless

    if why := keyless(table):
        yield Finding("error", why)


def _variant(url: str, options: Mapping[str, Any]) -> SinkKind | None:
    kind = _IN_BUCKET if is_in_bucket(url, options) else ICEBERG
    if is_copy(url, options):
        return replace(kind, on_spark=COPIES_NOT_ON_SPARK, misfits=_misfits)
    return kind if kind is _IN_BUCKET else None


ICEBERG: Final = replace(
    DIRECTORY,
    name="Iceberg",
    schemes=("iceberg",),
    drivers=("sql", "rest", "rests"),
    examples=(SQL_EXAMPLE, REST_EXAMPLE),
    options=IcebergOptions,
    open=_open,
    survey=_survey,
    on_spark=ByFiles(_target),
    has_definitions=lambda *_: False,
    variant=_variant,
    extra="lake",
)

_IN_BUCKET: Final = replace(ICEBERG, options=IcebergBucketOptions, variant=None)
