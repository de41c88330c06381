"""Completion in a real bash, by the script that `tidemill completion bash` prints."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tidemill.cli import app

COMPLETE = """
source "$1"; shift
while IFS= read -r line; do
    read -ra COMP_WORDS <<< "$line"
    [[ $line == *' ' ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _tidemill
    echo "${COMPREPLY[*]}"
done
"""


def commands(command: Any, path: str = "tidemill") -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, f"{path} {name}")


@pytest.fixture
def scripts(call, tmp_path: Path) -> dict[str, Path]:
    paths = {}
    for shell in "bash", "zsh", "fish":
        status, out, err = call("completion", shell)
        assert (status, err) == (0, "")
        paths[shell] = tmp_path / shell
        paths[shell].write_text(out)
    return paths


def completed(script: Path, *lines: str) -> list[set[str]]:
    """Return the words that bash offers at the end of each line."""
    arguments = ["bash", "--norc", "-c", COMPLETE, "bash", str(script)]
    done = subprocess.run(
        arguments, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return [set(line.split()) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("tidemill ru", {"run"}),
        ("tidemill run --sou", {"--source"}),
        ("tidemill bench so", {"sorter"}),
        ("tidemill bench sorter --ev", {"--events"}),
        ("tidemill dead-letters ", {"list", "retry", "drop"}),
        ("tidemill --ver", {"--version"}),
        ("tidemill run --json --unt", {"--until"}),
        ("tidemill run ", set()),  # a file
        ("tidemill run --data-dir ", set()),
        ("tidemill run --name --sou", set()),
        ("tidemill nothing ", set()),
    ],
)
def test_bash_completes(scripts: dict[str, Path], line: str, words: set[str]) -> None:
    (found,) = completed(scripts["bash"], line)
    if line == "tidemill nothing ":
        assert "run" in found, "an unknown command is corrected"
    else:
        assert found == words


def test_bash_knows_each_command_and_flag(scripts: dict[str, Path]) -> None:
    declared = dict(commands(typer.main.get_command(app)))
    flags = completed(scripts["bash"], *(f"{path} --" for path in declared))
    for (path, command), found in zip(declared.items(), flags, strict=True):
        known = {text for one in command.params for text in one.opts if text.startswith("--")}
        assert found == known | {"--help"}, path
    groups = {path: one for path, one in declared.items() if getattr(one, "commands", None)}
    offered = completed(scripts["bash"], *(f"{path} " for path in groups))
    assert offered == [set(one.commands) for one in groups.values()]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_scripts_have_each_command_and_flag(scripts: dict[str, Path], shell: str) -> None:
    text = scripts[shell].read_text()
    for path, command in commands(typer.main.get_command(app)):
        assert path == "tidemill" or path.split()[-1] in text
        for one in command.params:
            for flag in one.opts:
                assert not flag.startswith("--") or flag.removeprefix("--") in text
