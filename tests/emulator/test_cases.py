"""Cases as text over real gRPC: commands, ----, what came of them. `--rewrite` writes that down."""

from __future__ import annotations

from pathlib import Path

import pytest

from .script import Script

CASES = sorted(Path(__file__).parent.glob("cases/*.txt"))


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_case(path, make_client, rewrite):
    wanted = path.read_text()
    options = {"scan_rows": 1} if path.stem == "scan" else {}
    script = Script(make_client(**options))
    found = []
    for block in wanted.strip().split("\n\n"):
        commands = block.partition("----")[0]
        said = [out for line in commands.splitlines() if not line.startswith("#") for out in script.run(line)]
        found.append(commands + "----\n" + "\n".join(said or ["-"]))
    text = "\n\n".join(found) + "\n"
    if rewrite:
        path.write_text(text)
    assert text == wanted
