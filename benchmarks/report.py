"""The list of benchmarks, and reports of their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

Result: TypeAlias = dict[str, Any]
"""`bench`, `unit`, `settings`, `figures`, `yardstick` and `ratio`; a ratio above 1 beats the yardstick."""


def _actors(**settings: Any) -> Result:
    from . import actors

    return actors.run(**settings)


def _columns(**settings: Any) -> Result:
    from . import columns

    return columns.run(**settings)


def _sorter(**settings: Any) -> Result:
    from . import sorter

    return sorter.run(**settings)


def _mysql(**settings: Any) -> Result:
    from . import mysql

    return mysql.run(**settings)


def _runs(**settings: Any) -> Result:
    from . import runs

    return runs.run(**settings)


def _spark_typed(**settings: Any) -> Result:
    from . import spark_typed

    return spark_typed.run(**settings)


def _catalog(**settings: Any) -> Result:
    from . import catalog

    return catalog.run(**settings)


def _snapshot(**settings: Any) -> Result:
    from . import snapshot

    return snapshot.run(**settings)


def _sink(**settings: Any) -> Result:
    from . import sink

    return sink.run(**settings)


def _kafka(**settings: Any) -> Result:
    from . import kafka

    return kafka.run(**settings)


def _parquet(**settings: Any) -> Result:
    from . import parquet

    return parquet.run(**settings)


def _storage(**settings: Any) -> Result:
    from . import storage

    return storage.run(**settings)


def _encodings(**settings: Any) -> Result:
    from . import encodings

    return encodings.run(**settings)


def _merge(**settings: Any) -> Result:
    from . import merge

    return merge.run(**settings)


def _diff(**settings: Any) -> Result:
    from . import diff

    return diff.run(**settings)


def _shards(**settings: Any) -> Result:
    from . import shards

    return shards.run(**settings)


def _puller(**settings: Any) -> Result:
    from . import puller

    return puller.run(**settings)


def _pump(**settings: Any) -> Result:
    from . import pump

    return pump.run(**settings)


def _mount(**settings: Any) -> Result:
    from . import mount

    return mount.run(**settings)


def _tikv(**settings: Any) -> Result:
    from . import tikv

    return tikv.run(**settings)


def _flight(**settings: Any) -> Result:
    from . import flight

    return flight.run(**settings)


def _backfill(**settings: Any) -> Result:
    from . import backfill

    return backfill.run(**settings)


def _spark(**settings: Any) -> Result:
    from . import spark

    return spark.run(**settings)


BENCHES: Mapping[str, Callable[..., Result]] = {
    "actors": _actors,
    "columns": _columns,
    "sorter": _sorter,
    "mysql": _mysql,
    "runs": _runs,
    "catalog": _catalog,
    "snapshot": _snapshot,
    "sink": _sink,
    "encodings": _encodings,
    "kafka": _kafka,
    "parquet": _parquet,
    "storage": _storage,
    "merge": _merge,
    "diff": _diff,
    "shards": _shards,
    "puller": _puller,
    "pump": _pump,
    "mount": _mount,
    "tikv": _tikv,
    "flight": _flight,
    "backfill": _backfill,
    "spark": _spark,
    "spark-typed": _spark_typed,
}


_ROWS = "rows per second"
UNITS: Mapping[str, str] = {
    "actors": "per second",
    "columns": f"{_ROWS} of one core",
    "sorter": "million events per second; p50, p99: milliseconds",
    "mysql": _ROWS,
    "runs": f"{_ROWS} of CPU time",
    "catalog": "in each name",
    "snapshot": _ROWS,
    "sink": f"committed {_ROWS}",
    "encodings": f"{_ROWS} of CPU time",
    "kafka": _ROWS,
    "parquet": f"{_ROWS}, of the clock or of CPU time",
    "storage": _ROWS,
    "merge": "entries per second",
    "diff": _ROWS,
    "shards": _ROWS,
    "puller": "million changes per second",
    "pump": "thousand binlogs per second",
    "mount": _ROWS,
    "tikv": _ROWS,
    "flight": _ROWS,
    "backfill": _ROWS,
    "spark": _ROWS,
    "spark-typed": f"{_ROWS} of CPU time",
}
"""Units of the figures whose names don't end in one, such as `_seconds`, `_ms` or `_bytes`."""


def measured(name: str, **settings: Any) -> Result:
    """Run a benchmark; return its result with the `unit` of its figures."""
    result = BENCHES[name](**settings)
    return {"bench": result.pop("bench"), "unit": UNITS[name], **result}


def report(result: Result) -> str:
    """Return a result as a table: each figure with its yardstick and their ratio."""
    settings = ", ".join(
        f"{key} {value:,}" if isinstance(value, int) else f"{key} {value}"
        for key, value in result["settings"].items()
    )
    lines = [f"{result['bench']} ({settings})", f"  unit: {result['unit']}"]
    if "note" in result:
        lines.append(f"  {result['note']}")
    yardstick, ratio = result["yardstick"], result["ratio"]
    for name, figure in result["figures"].items():
        line = f"  {name:<24} {_number(figure):>14}"
        if name in yardstick:
            line += f"   yardstick {_number(yardstick[name]):>14}"
        lines.append(line)
    lines += [
        f"  yardstick {name:<14} {_number(figure):>14}"
        for name, figure in _flat(yardstick)
        if name not in result["figures"]
    ]
    lines += [f"  ratio {name:<24} {value:8.2f}" for name, value in ratio.items()]
    return "\n".join(lines)


def _flat(figures: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the figures of a yardstick with several ones, each with a name such as "bare committed"."""
    for name, figure in figures.items():
        if isinstance(figure, Mapping):
            yield from ((f"{name} {inner}", value) for inner, value in figure.items())
        else:
            yield name, figure


def _number(value: Any) -> str:
    return (
        str(value)
        if not isinstance(value, (int, float))
        else f"{value:,.0f}"
        if abs(value) >= 100
        else f"{value:.3f}"
    )
