"""Regular expressions on long texts that are made against them: none takes more than linear time.

A linear pattern takes some milliseconds. The limit is a hundred times as much, of the process's own time.
"""

from __future__ import annotations

import importlib
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from re import _compiler as compiler  # type: ignore[attr-defined]
from re import _constants as code  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import tidemill
from tidemill.chain.selection.where import _expression
from tidemill.codec.mysql import tokens
from tidemill.codec.mysql.tokens import NO_BACKSLASH_ESCAPES, NotUnderstood, Tokens

ROOT = Path(tidemill.__file__).parent
REPEATS = 10_000
LIMIT_SECONDS = 0.2
OUTSIDE = ("tests", "testing", "emulator", "benchmarks", "build", "examples", ".venv")
"""Folders whose patterns read nothing of others."""
ASSIGNED = re.compile(r"^(\w+)(?:: Final)? = re\.compile\(", re.MULTILINE)
CHARACTERS = " '\"`0a_x.,:;-/\\*()\n%#"


class TooSlow(Exception):
    """A pattern took longer than the limit."""


@contextmanager
def limited() -> Iterator[None]:
    """Raise TooSlow after the limit of the process's own time; a matching pattern looks for signals."""

    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def patterns() -> Iterator[tuple[str, re.Pattern[Any], set[str]]]:
    """Each pattern that a module has by name, and the methods that the module calls."""
    for file in sorted(ROOT.rglob("*.py")):
        path = file.relative_to(ROOT)
        if path.parts[0] in OUTSIDE:
            continue
        text = file.read_text()
        for name in ASSIGNED.findall(text):
            module = importlib.import_module(".".join(["tidemill", *path.with_suffix("").parts]))
            methods = set(re.findall(rf"\b{name}\.(\w+)", text)) & {"search", "findall", "finditer", "sub"}
            found = getattr(module, name)
            yield f"{path}:{name}", getattr(found, "__self__", found), methods


def attacks(pattern: re.Pattern[Any]) -> Iterator[Any]:
    """Texts that repeat what a part of the pattern repeats, and then end otherwise."""
    flags = pattern.flags & ~re.UNICODE
    found = set(_attacks(parser.parse(pattern.pattern, flags), ""))
    for before, body in sorted(found):
        repeated = body * (REPEATS // len(body))
        for text in (f"{before}{repeated}\0", f"{repeated}\0{body}"):
            yield text if isinstance(pattern.pattern, str) else text.encode("latin-1")


def _attacks(parts: Any, before: str) -> Iterator[tuple[str, str]]:
    for kind, value in parts:
        for inner in _inner(kind, value):
            yield from _attacks(inner, before)
        if kind in (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT) and value[1] == code.MAXREPEAT:
            for body in _bodies(value[2]):
                yield before, body
                yield before, before + body
        before += next(iter(_bodies([(kind, value)])), "")


def _inner(kind: Any, value: Any) -> list[Any]:
    if kind in (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT):
        return [value[2]]
    if kind is code.SUBPATTERN:
        return [value[3]]
    if kind is code.ATOMIC_GROUP:
        return [value]
    if kind is code.BRANCH:
        return list(value[1])
    return []


def _bodies(parts: Any) -> list[str]:
    """Short texts that these parts of a pattern match."""
    texts = [""]
    for kind, value in parts:
        texts = [text + more for text in texts for more in _texts(kind, value)][:40]
    return [text for text in texts if text]


def _texts(kind: Any, value: Any) -> list[str]:
    if kind is code.LITERAL:
        return [chr(value)]
    if kind in (code.IN, code.ANY, code.NOT_LITERAL):
        one = compiler.compile(parser.SubPattern(parser.State(), [(kind, value)]), re.DOTALL)
        return [character for character in CHARACTERS if one.fullmatch(character)] or ["a"]
    if kind in (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT):
        least = value[0]
        return [text * max(least, 1) for text in _bodies(value[2])] + [""] * (not least)
    if kind is code.BRANCH:
        return [text for branch in value[1] for text in _bodies(branch)[:10]]
    return [text for inner in _inner(kind, value) for text in _bodies(inner)] or [""]


def is_linear(pattern: re.Pattern[Any], methods: set[str]) -> bool:
    for text in attacks(pattern):
        try:
            with limited():
                pattern.match(text)
                pattern.fullmatch(text)
                if methods:
                    pattern.search(text)
                    sum(1 for _ in pattern.finditer(text))
        except TooSlow:
            print(pattern.pattern, repr(text[:60]), repr(text[-10:]))
            return False
    return True


def test_every_pattern_is_linear() -> None:
    found = {name: is_linear(pattern, methods) for name, pattern, methods in patterns()}
    assert len(found) > 60
    assert [name for name in found if not found[name]] == []


@pytest.mark.parametrize(
    ("pattern", "methods"),
    [
        (r"(?:\s|/\*.*?\*/|\()*([A-Za-z]+)", set()),
        (r"\(\s*json_valid\s*\(\s*`?((?:[^`)]|``)+?)`?\s*\)\s*\)", set()),
        (r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", set()),
        (r"'(?:[^'\\]|\\.)*'", {"search"}),
        (".*a.*a.*a.*b", set()),
    ],
)
def test_a_pattern_that_is_not_linear_is_found(pattern: str, methods: set[str]) -> None:
    assert not is_linear(re.compile(pattern, re.DOTALL), methods)


@pytest.mark.parametrize("escapes", [False, True])
@pytest.mark.parametrize("of_mysql", [False, True])
def test_the_words_of_statements_are_read_in_linear_time(escapes: bool, of_mysql: bool) -> None:
    mode = 0 if escapes else NO_BACKSLASH_ESCAPES
    pattern = tokens._scanner(escapes, of_mysql).__self__  # type: ignore[attr-defined]
    for text in attacks(pattern):
        read = Tokens(text, mode, of_mysql=of_mysql)
        with limited(), suppress(NotUnderstood):
            while read.take().kind != "end":
                pass


@pytest.mark.parametrize("like", ["%a%a%a%b", "%a_%a_%a_%b", "a%_%_%_%a", "%%%%%%b", "%ab%ab%abc%"])
def test_like_is_linear(like: str) -> None:
    pattern = re.compile(_expression(like, str, "where"), re.DOTALL)
    assert is_linear(pattern, set())
    for text in ("a", "ab", "_", "ba"):
        with limited():
            pattern.fullmatch(text * REPEATS)
