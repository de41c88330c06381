"""Which benchmarks there are, and their results for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Result: TypeAlias = dict[str, Any]
"""`bench`, `settings`, `figures`, `yardstick` and `ratio`; a ratio above 1 beats the yardstick."""


def _actors(**settings: Any) -> Result:
    from . import actors

    return actors.run(**settings)


def _sorter(**settings: Any) -> Result:
    from . import sorter

    return sorter.run(**settings)


def _mysql(**settings: Any) -> Result:
    from . import mysql

    return mysql.run(**settings)


def _sink(**settings: Any) -> Result:
    from . import sink

    return sink.run(**settings)


BENCHES: Mapping[str, Callable[..., Result]] = {
    "actors": _actors,
    "sorter": _sorter,
    "mysql": _mysql,
    "sink": _sink,
}


def report(result: Result) -> str:
    """A result as a table: each figure beside its yardstick and their ratio."""
    settings = ", ".join(
        f"{key} {value:,}" if isinstance(value, int) else f"{key} {value}"
        for key, value in result["settings"].items()
    )
    lines = [f"{result['bench']} ({settings})"]
    yardstick, ratio = result["yardstick"], result["ratio"]
    for name, figure in result["figures"].items():
        line = f"  {name:<24} {_number(figure):>14}"
        if name in yardstick:
            line += f"   yardstick {_number(yardstick[name]):>14}"
        lines.append(line)
    lines += [f"  ratio {name:<24} {value:8.2f}" for name, value in ratio.items()]
    return "\n".join(lines)


def _number(value: Any) -> str:
    return (
        str(value)
        if not isinstance(value, (int, float))
        else f"{value:,.0f}"
        if abs(value) >= 100
        else f"{value:.3f}"
    )
