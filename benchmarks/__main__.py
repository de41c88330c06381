"""The quick benchmarks, run one after the other: python -m tidemill.benchmarks [NAME ...]"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .report import BENCHES, measured, report


def main(names: Sequence[str]) -> None:
    """Run the named benchmarks, or all, and print each result when it is there."""
    for name in names or BENCHES:
        print(report(measured(name)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
