"""The list of benchmarks, and reports of their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

Result: TypeAlias = dict[str, Any]
"""`bench`, `unit`, `settings`, `figures`, `yardstick` and `ratio`; a ratio above 1 beats the yardstick."""


_ROWS = "rows per second"
UNITS: Mapping[str, str] = {
    "actors": "per second",
    "sorter": "million events per second; p50, p99: milliseconds",
    "mysql": _ROWS,
    "snapshot": _ROWS,
    "sink": f"committed {_ROWS}",
    "kafka": _ROWS,
    "parquet": f"{_ROWS}, of the clock or of CPU time",
    "lake": _ROWS,
    "diff": _ROWS,
    "verify": f"{_ROWS}, of the clock or of CPU time",
    "shards": _ROWS,
    "serve": f"{_ROWS}; p99: milliseconds",
    "feeds": "percent of a core; a feed's: MB, numbers",
    "puller": "million changes per second",
    "pump": "thousand binlogs per second",
    "tikv": _ROWS,
    "flight": _ROWS,
    "backfill": _ROWS,
    "spark": _ROWS,
    "spark-typed": f"{_ROWS} of CPU time",
}
"""Units of the figures whose names don't end in one, such as `_seconds`, `_ms` or `_bytes`."""


def _run(name: str, **settings: object) -> Result:
    result: Result = import_module(f".{name.replace('-', '_')}", __package__).run(**settings)
    return result


BENCHES: Mapping[str, Callable[..., Result]] = {name: partial(_run, name) for name in UNITS}
"""Benchmarks by name: each is the function `run` of the module of that name, imported when it is called."""


def measured(name: str, **settings: object) -> Result:
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


def _flat(figures: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield the figures of a yardstick with several ones, each with a name such as "bare committed"."""
    for name, figure in figures.items():
        if isinstance(figure, Mapping):
            yield from ((f"{name} {inner}", value) for inner, value in figure.items())
        else:
            yield name, figure


def _number(value: object) -> str:
    return (
        str(value)
        if not isinstance(value, (int, float))
        else f"{value:,.0f}"
        if abs(value) >= 100
        else f"{value:.3f}"
    )
