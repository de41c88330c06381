"""The tutorials as programs: their files, statements and commands, in the order of the page."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

PAGES: Final = Path(__file__).parents[1] / "docs/tutorial"
_BLOCK: Final = re.compile(r"^```(python|toml|sql|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


Execute: TypeAlias = Callable[[str], object]
Run: TypeAlias = Callable[[str], str]
"""Runs a command, which must succeed, and returns what it printed."""


def shell(directory: Path, variables: Mapping[str, str]) -> Run:
    """Return a function that runs commands in a directory, with this Python's programs."""

    def run(command: str) -> str:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=directory,
            env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", **variables},
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    return run


def follow(page: str, directory: Path, execute: Execute, run: Run) -> None:
    """Do what a page of the tutorial says, in a directory.

    A block of Python or TOML whose first line is "# NAME" becomes the file NAME. Statements are given to
    `execute` one by one, lines after "$ " to `run`. If the page shows lines below a command, it must print
    these.
    """
    for language, text in _BLOCK.findall((PAGES / f"{page}.md").read_text()):
        match language:
            case "sql":
                for statement in filter(str.strip, text.split(";\n")):
                    execute(statement)
            case "console":
                for command in text.removeprefix("$ ").split("\n$ "):
                    line, _, shown = command.partition("\n")
                    printed = run(line)
                    assert not shown.strip() or printed.strip() == shown.strip(), line
            case _:
                (directory / text.partition("\n")[0].removeprefix("# ")).write_text(text)
