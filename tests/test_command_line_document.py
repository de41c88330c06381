"""docs/reference/command-line.md describes every command as it is declared."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from tidemill.cli import app

DOCUMENT = Path(__file__).parents[1] / "docs" / "reference" / "command-line.md"
HEAD = """\
# Command line

Most commands take a feed file, or flags in its place, such as `--source`, `--table` and `--sink`.

An error is one line on stderr, which says what to do. The exit status:

| status | meaning |
|---|---|
| 0 | done; a feed that SIGINT or SIGTERM stopped, too |
| 1 | an error while it ran; `check`: an error was found; `status`: the feed has failed; `diff` and `demo`: \
rows differ; `dead-letters retry`: a letter is rejected again |
| 2 | a flag, an argument or a key of the feed file is wrong, or a package is missing; `diff`: any error |
| 130 | a command without a feed was stopped by SIGINT |

Output has colours on a terminal only, and none if the variable `NO_COLOR` is set.

    eval "$(tidemill completion bash)"    # in ~/.bashrc: completes commands and flags

"""
NEXT = """\
## Next

- [Run a feed from a file](../how-to/feed-file.md).
- All keys of the file: [options](options.md).
- [Find out why a feed lags](../how-to/find-out-why-it-lags.md).
"""


def commands(command: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each command that does something, with its context, in the order of the help."""
    below = getattr(command, "commands", {})
    if not below:
        yield command, context
    for name, child in below.items():
        yield from commands(child, typer.Context(child, info_name=name, parent=context))


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def is_example(paragraph: str) -> bool:
    return paragraph.strip().startswith(("tidemill ", "eval "))


def section(command: Any, context: Any) -> str:
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
    parts = (command.help or "").split("\n\n")
    text = "\n\n".join(
        f"    {part.strip()}" if is_example(part) else " ".join(part.split()) for part in parts
    )
    rows = [
        f"| `{cell(record[0])}` | {cell(record[1])} |\n"
        for parameter in command.params
        if (record := parameter.get_help_record(context))
    ]
    table = "| flag or argument | meaning |\n|---|---|\n" + "".join(rows) + "\n" if rows else ""
    return f"## `{context.command_path}`\n\n{text}\n\nUsage: `{usage}`\n\n{table}"


def document() -> str:
    top: Any = typer.main.get_command(app)
    found = list(commands(top, typer.Context(top, info_name="tidemill")))
    return HEAD + "".join(section(*each) for each in found) + NEXT


def test_the_document_is_that_of_the_declarations(rewrite: bool) -> None:
    made = document()
    if rewrite:
        DOCUMENT.write_text(made)
    assert DOCUMENT.read_text() == made


def test_each_command_has_one_example_which_its_parser_takes() -> None:
    top: Any = typer.main.get_command(app)
    for command, context in commands(top, typer.Context(top, info_name="tidemill")):
        (example,) = [part.strip() for part in (command.help or "").split("\n\n") if is_example(part)]
        assert len(example) < 70, "it is on one line of a terminal"
        line = re.sub(r'^eval "\$\((.*)\)"$', r"\1", example).partition(" > ")[0]
        path, words = context.command_path.split(), shlex.split(line)
        assert words[: len(path)] == path
        command.make_context(path[-1], words[len(path) :]).close()


def test_each_parameter_is_described() -> None:
    assert [line for line in DOCUMENT.read_text().splitlines() if line.endswith("|  |")] == []
