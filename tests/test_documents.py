"""The documents: the site builds without a warning, and each link leads somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_CODE = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
_LINK_IN_HEADING = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def documents() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [ROOT / name for name in listed.stdout.splitlines()]


@cache
def anchors(document: Path) -> frozenset[str]:
    """Return the anchors of a document's headings, as GitHub and the site make them."""
    seen: Counter[str] = Counter()
    found = set()
    for title in _HEADING.findall(_CODE.sub("", document.read_text())):
        words = _LINK_IN_HEADING.sub(r"\1", title).strip().lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return frozenset(found)


def broken(document: Path) -> Iterator[str]:
    """Yield the relative links of a document that lead nowhere."""
    for link in _LINK.findall(_CODE.sub("", document.read_text())):
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        if "://" in link or link.startswith("mailto:"):
            continue
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_each_relative_link_leads_to_a_file_and_a_heading(document: Path) -> None:
    assert list(broken(document)) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text(
        "# One `a.b`\n\n[a](page.md#one-ab) [b](page.md#two) [c](other.md)\n```\n[d](none)\n```\n"
    )
    assert list(broken(document)) == ["page.md#two", "other.md"]


def test_each_page_that_code_names_exists() -> None:
    named = subprocess.run(
        ["git", "grep", "-hoE", r"\bdocs/[a-z-]+/[a-z0-9-]+\.md", "--", ":!*.md"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert {name for name in named.stdout.split() if not (ROOT / name).is_file()} == set()


def pages() -> list[Path]:
    return [
        page
        for page in documents()
        if page.parent.parent == ROOT / "docs" and page.parent.name != "decisions"
    ]


@pytest.mark.parametrize("page", pages(), ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_each_page_ends_with_what_to_read_next(page: Path) -> None:
    title, _, links = page.read_text().rpartition("\n## ")[2].partition("\n")
    assert title == "Next"
    assert "](" in links


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"]
    built = subprocess.run(
        [*command, "-d", tmp_path / "doctrees", ROOT / "docs", tmp_path / "site"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "site/index.html").is_file()
