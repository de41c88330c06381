from __future__ import annotations

from collections import Counter

import pytest

from .protocol import table_of


@pytest.hookimpl
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how often histories were killed in each state of the protocol."""
    killed: Counter[str] = Counter()
    histories = 0
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == "kills" and getattr(report, "when", "") == "call":
                    killed.update(value)
                    histories += 1
    if histories:
        terminalreporter.write_line(f"Kills in {histories} histories of shards, by the state of a change:")
        for line in table_of(killed):
            terminalreporter.write_line(line)
