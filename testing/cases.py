"""Cases as text: a title, commands, "----" and what comes of them; empty lines separate a file's cases.

The title is a comment, "# ...", in the first line, or that line itself. A changed outcome is written into
the file by `pytest --rewrite` (without -n), and its difference is reviewed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple


class Case(NamedTuple):
    """One block of a file."""

    path: Path
    number: int
    given: str
    """The lines above "----", with comments."""
    wanted: str
    """The lines below."""

    @property
    def title(self) -> str:
        return self.given.partition("\n")[0].removeprefix("# ")

    @property
    def commands(self) -> str:
        """The lines above "----" without comments."""
        return "\n".join(line for line in self.given.splitlines() if not line.startswith("#"))

    def expect(self, output: str, rewrite: bool) -> None:
        """Compare `output` with the file; with `rewrite`, write it there first. Raises AssertionError."""
        if rewrite:
            blocks = [(case.given, case.wanted) for case in load(self.path)]
            blocks[self.number] = (self.given, output)
            self.path.write_text(text_of(blocks))
        assert output == self.wanted


def load(path: Path) -> list[Case]:
    """Read a file's cases."""
    cases = []
    for number, block in enumerate(path.read_text().strip("\n").split("\n\n")):
        given, _, wanted = block.partition("\n----")
        cases.append(Case(path, number, given, wanted.removeprefix("\n")))
    return cases


def title(case: Case) -> str:
    """Return a case's title, the id of its test."""
    return case.title


def expect_history(path: Path, play: Callable[[str], str], rewrite: bool) -> None:
    """Play the commands of a file's cases, each going on where the one before ended, as Case.expect does."""
    expect_all(path, [(case.given, play(case.commands)) for case in load(path)], rewrite)


def expect_all(path: Path, blocks: Iterable[tuple[str, str]], rewrite: bool) -> None:
    """Compare a whole file with what is given and what comes of it, block by block, as Case.expect does."""
    wanted, text = path.read_text(), text_of(blocks)
    if rewrite:
        path.write_text(text)
    assert text == wanted


def text_of(blocks: Iterable[tuple[str, str]]) -> str:
    """Return a file's text of what is given and what comes of it."""
    return "\n\n".join(f"{given}\n----\n{output}".rstrip("\n") for given, output in blocks) + "\n"
