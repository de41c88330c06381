"""The parser of case files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.testing import cases

TEXT = """\
# a title
one
# a remark
two
----
1
2

three
----

four
----
4
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "cases.txt"
    path.write_text(TEXT)
    return path


def test_a_file_is_read_as_blocks_and_written_as_it_was(path: Path) -> None:
    found = cases.load(path)
    assert [(case.title, case.commands, case.wanted) for case in found] == [
        ("a title", "one\ntwo", "1\n2"),
        ("three", "three", ""),
        ("four", "four", "4"),
    ]
    assert cases.text_of((case.given, case.wanted) for case in found) == TEXT


def test_an_outcome_that_differs_is_an_error_and_is_written_down_only_on_request(path: Path) -> None:
    first, second, _ = cases.load(path)
    first.expect("1\n2", False)
    with pytest.raises(AssertionError):
        second.expect("3", False)
    assert path.read_text() == TEXT
    with pytest.raises(AssertionError):
        second.expect("3", True)
    assert path.read_text() == TEXT.replace("three\n----\n", "three\n----\n3\n")


def test_a_history_is_played_from_case_to_case(path: Path) -> None:
    played: list[str] = []

    def play(commands: str) -> str:
        played.append(commands)
        return str(len(played))

    with pytest.raises(AssertionError):
        cases.expect_history(path, play, True)
    assert played == ["one\ntwo", "three", "four"]
    cases.expect_all(path, [(case.given, case.wanted) for case in cases.load(path)], False)
    assert [case.wanted for case in cases.load(path)] == ["1", "2", "3"]
