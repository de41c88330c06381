"""Versions that fit together: of PySpark, Scala, Java and Delta Lake.

The extra `spark`, the packages of a session with a lake, tests and documents agree with this file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from ..errors import ConfigError

SPARK: Final = "4.2"
"""Series of Spark: streams need the read limits of Python sources, which 4.1 lacks, and Delta Lake has no
release for 4.3 yet. Iceberg has releases up to 4.1."""
PYSPARK: Final = "4.2.1"
"""Release of it that is tested, and the oldest that the extra installs."""
SCALA: Final = "2.13"
JAVA: Final = 17
"""Oldest Java that Spark can run on."""
DELTA: Final = "4.4.0"
DUCKDB: Final = "2.0"
"""Oldest DuckDB that is written, and that reads lakes by Arrow."""


class Lake(NamedTuple):
    """The parts of a lake's support in Spark."""

    jars: tuple[str, ...]
    """Coordinates of the jars in Maven Central: all that Spark doesn't bring itself."""
    settings: dict[str, str]


LAKES: Final = {
    "delta": Lake(
        jars=tuple(
            f"io.delta:{name}:{DELTA}"
            for name in (
                f"delta-spark_{SPARK}_{SCALA}",
                "delta-storage",
                "delta-kernel-api",
                "delta-kernel-defaults",
                "delta-kernel-unitycatalog",
            )
        ),
        settings={
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
    )
}
"""By the name that `tidemill.spark.session(lakes=...)` takes."""

_NOT_FETCHED: Final = ("com.fasterxml.jackson*:*", "io.unitycatalog:*", "org.apache.*:*", "org.slf4j:*")
"""Dependencies of the jars that Spark has in versions of its own, or that nothing here calls."""
_JARS: Final = "spark.jars"
_PACKAGES: Final = "spark.jars.packages"
_LISTS: Final = (_PACKAGES, "spark.sql.extensions", "spark.jars.excludes")
"""Settings that are lists: those of a lake are added to the user's."""


def lake_settings(lakes: Iterable[str], config: dict[str, str]) -> dict[str, str]:
    """Return the settings of a session with these lakes, `config` included.

    Spark fetches the jars from Maven Central, unless `config` has `spark.jars`: then they are among those.
    Raises ConfigError for an unknown lake.
    """
    settings = dict(config)
    for name in lakes:
        if name not in LAKES:
            raise ConfigError(f"lakes: {name!r} is none; accepted: {', '.join(LAKES)}")
        lake = LAKES[name]
        more = dict(lake.settings)
        if _JARS not in config:
            more |= {_PACKAGES: ",".join(lake.jars), "spark.jars.excludes": ",".join(_NOT_FETCHED)}
        for key, value in more.items():
            if key in _LISTS and settings.get(key):
                value = f"{settings[key]},{value}"
            elif key in settings:
                value = settings[key]
            settings[key] = value
    return settings
