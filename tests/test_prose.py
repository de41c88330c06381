"""Docstrings, comments, help texts and documents avoid the shapes below, which hide their meaning."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tidemill.cli import app

ROOT = Path(__file__).parents[1]


NEVER_CHECKED = ("docs/decisions/", "tests/test_prose.py")
"""Dated notes, which stay as they were written, and the examples in this file."""

SHAPES = {
    "anew, mend": (
        r"\banew\b|\bmend(s|ed|ing)?\b",
        "say 'again' or 'new', and 'correct' or 'repair'",
    ),
    "begins with a relative clause": (
        r"^(What|Who|Whose|Whom|Whoever)\b(?!.*\?$)",
        "begin with a verb or a noun phrase: 'Return …', 'The tables that …'",
    ),
    "begins with a genitive": (
        r"^Of (a|an|one|each|its|all|the|those)\b",
        "name the noun: 'Number of …', 'Commit ts of …'",
    ),
    "begins with those": (
        r"^Those (that|who|whose|with|of)\b",
        "name them: 'Tables that …'",
    ),
    "begins with so long": (
        r"^So (long|many|much|often)\b",
        "name the quantity: 'Timeout …', 'Maximum number of …'",
    ),
    "begins with whether": (
        r"^Whether\b",
        "say which value means what: 'True if …'",
    ),
    "so many": (
        r"\b(so|that|this) (many|much) (rows|bytes|sinks|regions|tables|tasks|changes|parts)\b",
        "name the quantity: 'up to n rows', 'at most max_bytes'",
    ),
    "behind for after": (
        r"\bbehind (the|its|that|each|a) (last|latest|first|checkpoint|position|transaction|present|key)\b",
        "'behind' means lag: say 'after' for an order",
    ),
}
"""Name: the pattern of a sentence's text, and the better words."""


def tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [path for path in listed.stdout.splitlines() if not path.startswith(NEVER_CHECKED)]


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements in a node, without their expressions."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        found = getattr(node, name, ())
        for child in found if isinstance(found, list) else ():
            yield child
            yield from statements(child)


def likely_comments(source: str) -> Iterator[str]:
    """Yield the text after each #, and after that of lines before it: a comment or a part of a string."""
    block = ""
    for line in source.splitlines():
        _, *texts = line.split("#")
        for number in range(len(texts)):
            yield "#".join(texts[number:]).lstrip("# ")
        block = f"{block} {line.lstrip('# ')}" if line.lstrip().startswith("#") else ""
        yield block.lstrip()


def python_texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield line number and text of each docstring, field docstring, help text and comment block."""
    tree = ast.parse(source)
    for node in ast.walk(tree) if "help=" in source else ():
        match node:
            case ast.keyword("help", ast.Constant(str(text))):
                yield node.lineno, text[:1].upper() + text[1:]
    for node in statements(tree):
        match node:
            case ast.Expr(ast.Constant(str(text))):
                yield node.lineno, " ".join(text.split())
    if not any(
        re.search(pattern, text) for text in likely_comments(source) for pattern, _ in SHAPES.values()
    ):
        return  # most files: tokenizing all takes eight times as long
    block, last = "", 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            line, text = token.start[0], token.string.lstrip("# ")
            own_line = token.line.lstrip().startswith("#")
            block = f"{block} {text}" if own_line and line == last + 1 else text
            last = line if own_line else 0
            yield line, block


def document_texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield line number and text of each paragraph, list item and table cell outside of code."""
    number, paragraph = 0, ""
    code = False
    for line_number, line in enumerate([*source.splitlines(), ""], 1):
        if line.startswith("```"):
            code = not code
            continue
        if code or line.startswith("    "):
            continue
        begins = re.match(r"\s*([-*#]|\d+\.) ", line)
        if (not line.strip() or begins or line.startswith("|")) and paragraph:
            yield number, paragraph
            paragraph = ""
        if line.startswith("|"):
            for cell in line.strip("|").split("|"):
                yield line_number, cell.strip()
        elif line.strip():
            if not paragraph:
                number = line_number
            paragraph = f"{paragraph} {line.strip().lstrip('-*# ')}".strip()


def odd(path: str, source: str) -> list[str]:
    texts = python_texts(source) if path.endswith(".py") else document_texts(source)
    return [
        f"{path}:{line}: {name}: {better}: {text[:80]!r}"
        for line, text in texts
        for name, (pattern, better) in SHAPES.items()
        if re.search(pattern, text)
    ]


def test_docstrings_comments_and_documents_have_no_odd_shapes():
    found = [each for path in tracked() for each in odd(path, (ROOT / path).read_text())]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("path", "source", "shape"),
    [
        ("a.py", '"""What is written."""', "begins with a relative clause"),
        ("a.py", 'Option(help="what captures are shown")', "begins with a relative clause"),
        ("a.py", 'x = 1\n"""Of a region, its rows."""', "begins with a genitive"),
        ("a.py", 'x = 1\n"""Those that are read."""', "begins with those"),
        ("a.py", 'x = 1\n"""So long it waits."""', "begins with so long"),
        ("a.py", 'x = 1\n"""Whether it is open."""', "begins with whether"),
        ("a.py", "# resumes behind\n# the checkpoint", "behind for after"),
        ("a.py", "x = 1  # reads so many rows", "so many"),
        ("a.md", "It is\nmade anew.", "anew, mend"),
        ("a.md", "| field | Those that are read |", "begins with those"),
    ],
)
def test_each_shape_is_found(path, source, shape):
    assert any(f": {shape}: " in each for each in odd(path, source))


def test_code_and_strings_are_not_prose():
    assert not odd("a.py", 'print("What is written anew")')
    assert not odd("a.md", "```\nmade anew\n```\n\n    made anew\n")


SUMMARY_CHARACTERS = 60
"""Length of a command's first sentence that `tidemill --help` prints whole on 80 columns."""


def commands(command: Any, name: str = "tidemill") -> Iterator[tuple[str, Any]]:
    """Yield a command and all commands below it, with their full names."""
    yield name, command
    for below, child in getattr(command, "commands", {}).items():
        yield from commands(child, f"{name} {below}")


def test_help_of_each_command_begins_with_a_short_sentence():
    for name, command in commands(typer.main.get_command(app)):
        summary = (command.help or "").splitlines()[0]
        assert summary.endswith("."), f"{name}: {summary!r}"
        assert len(summary) <= SUMMARY_CHARACTERS or name == "tidemill", f"{name}: {summary!r}"


def test_each_flag_and_argument_has_a_help_text_that_begins_with_a_capital():
    for name, command in commands(typer.main.get_command(app)):
        for parameter in command.params:
            text = getattr(parameter, "help", None) or ""
            assert re.match(r"[A-Z]", text), f"{name} {parameter.name}: {text!r}"
            assert "may be repeated" not in text, f"{name} {parameter.name}: say 'repeatable'"
