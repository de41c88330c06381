"""Delta Lake's jars for Spark, in build/delta by `tests/services/delta`."""

from __future__ import annotations

from pathlib import Path

_HOME = Path(__file__).parents[1] / "build/delta"


def jars() -> list[str]:
    """Return the paths of the jars; none if they aren't here."""
    return sorted(str(path) for path in _HOME.glob("*.jar"))


def missing() -> str:
    """Return why there is no Delta Lake for Spark here; empty if there is one."""
    return "" if jars() else f"{_HOME} has no jars of Delta Lake: run tests/services/delta"
