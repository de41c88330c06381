"""The quick benchmarks, run one after the other: python -m tidemill.benchmarks [NAME ...]"""

from __future__ import annotations

import sys

from .report import BENCHES, report

if __name__ == "__main__":
    for name in sys.argv[1:] or BENCHES:
        print(report(BENCHES[name]()), flush=True)
