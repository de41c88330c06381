"""Cases as text over real gRPC: commands, ----, what came of them. `--rewrite` writes that down."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.testing import cases

from .script import Script

CASES = sorted(Path(__file__).parent.glob("cases/*.txt"))


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_case(path, make_client, rewrite):
    options = {"scan_rows": 1} if path.stem == "scan" else {}
    script = Script(make_client(**options))

    def play(commands: str) -> str:
        said = [out for line in commands.splitlines() for out in script.run(line)]
        return "\n".join(said or ["-"])

    cases.expect_history(path, play, rewrite)
