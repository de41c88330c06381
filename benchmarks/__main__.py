"""All benchmarks, or those named, one after the other; `tidemill bench NAME` takes settings."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from .report import BENCHES, measured, report


def main(words: Sequence[str] | None = None) -> None:
    """Run benchmarks, and print each result when it is there."""
    parser = argparse.ArgumentParser(prog="python -m tidemill.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHES))
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each")
    chosen = parser.parse_args(words)
    if unknown := [name for name in chosen.names if name not in BENCHES]:
        parser.error(f"NAME: {', '.join(unknown)}: choose from {', '.join(BENCHES)}")
    for name in chosen.names or BENCHES:
        result = measured(name)
        print(json.dumps(result) if chosen.json else report(result), flush=True)


if __name__ == "__main__":
    main()
