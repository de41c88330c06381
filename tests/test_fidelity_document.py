"""docs/concepts/fidelity.md names tests that exist."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROWS = [
    line
    for line in (TESTS.parent / "docs/concepts/fidelity.md").read_text().splitlines()
    if line.startswith("|") and not line.startswith(("| case", "|---"))
]


@pytest.mark.parametrize("row", ROWS, ids=[row.split("|")[1].strip()[:50] for row in ROWS])
def test_each_case_names_tests_that_exist(row):
    words = re.findall(r"`([\w/.]+\.py|test_\w+)`", row.split("|")[3])
    assert len(words) > 1
    source = ""
    for word in words:
        if word.endswith(".py"):
            source = (TESTS / word).read_text()
        else:
            assert f"def {word}(" in source, word
