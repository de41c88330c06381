"""All sorters and yardsticks in comparison, as a table and a picture: `make bench-sorter`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from . import sorter
from .rocks import YARDSTICKS

ENGINES: dict[str, dict[str, Any]] = {
    "memory": {"engine": "memory"},
    "unified": {"engine": "unified"},
    "db": {"engine": "db"},
    "db, tier off": {"engine": "db", "memory_tier": 0},
}
COLUMNS = {
    "write 16": ("fetch", 16, "write"),
    "fetch 16": ("fetch", 16, "fetch"),
    "both 16": ("both", 16, "both"),
    "both 1000": ("both", 1000, "both"),
    "CPU s 16": ("both", 16, "cpu_seconds"),
    "p50 ms": ("latency", 16, "p50"),
    "p99 ms": ("latency", 16, "p99"),
}
"""The columns: the mode, the tables and the figure. Rates are in million events per second."""
PICTURED = ("both 16", "both 1000")


def measure(events: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return the figures by row and column. The yardsticks' are from the runs of the first engine."""
    rows: dict[str, dict[str, float]] = {}
    for name, options in ENGINES.items():
        yardsticks = tuple(YARDSTICKS) if not rows else ()
        for mode, tables in dict.fromkeys((mode, tables) for mode, tables, _ in COLUMNS.values()):
            result = sorter.run(
                **options, mode=mode, tables=tables, events=events, rounds=rounds, yardsticks=yardsticks
            )
            for row, figures in {name: result["figures"], **result["yardstick"]}.items():
                for column, wanted in COLUMNS.items():
                    if wanted[:2] == (mode, tables):
                        rows.setdefault(row, {})[column] = figures[wanted[2]]
    return rows


def as_text(rows: dict[str, dict[str, float]]) -> str:
    lines = [f"{'':14}" + "".join(f"{column:>11}" for column in COLUMNS)]
    for name, row in rows.items():
        lines.append(f"{name:14}" + "".join(f"{row[column]:>11.3g}" for column in COLUMNS))
    return "\n".join(lines)


def draw(rows: dict[str, dict[str, float]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 4.5))
    names = list(rows)
    for n, column in enumerate(PICTURED):
        places = [at + 0.4 * n - 0.2 for at in range(len(names))]
        axes.barh(places, [rows[name][column] for name in names], height=0.38, label=f"{column} tables")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("million events a second, in and out at once (W1)")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(directory: Path, events: int = 500_000, rounds: int = 3) -> None:
    rows = measure(events, rounds)
    text = as_text(rows)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "sorter.txt").write_text(text + "\n")
    (directory / "sorter.json").write_text(json.dumps(rows, indent=1) + "\n")
    draw(rows, directory / "sorter.png")
    print(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
