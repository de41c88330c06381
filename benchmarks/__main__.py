"""Benchmarks, one after the other: python -m tidemill.benchmarks [--json] [NAME [SETTING=VALUE ...]] ..."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from .report import BENCHES, measured, report


def main(words: Sequence[str]) -> None:
    """Run the named benchmarks with their settings, or all, and print each result when it is there.

    A value is a number, a text, or texts with commas between them.
    """
    wanted: list[tuple[str, dict[str, Any]]] = []
    for word in words:
        name, is_setting, value = word.partition("=")
        if is_setting:
            wanted[-1][1][name] = _value(value)
        elif word != "--json":
            wanted.append((word, {}))
    for name, settings in wanted or [(name, {}) for name in BENCHES]:
        result = measured(name, **settings)
        print(json.dumps(result) if "--json" in words else report(result), flush=True)


def _value(text: str) -> int | str | list[str]:
    if text.isdecimal():
        return int(text)
    return [part for part in text.split(",") if part] if "," in text else text


if __name__ == "__main__":
    main(sys.argv[1:])
