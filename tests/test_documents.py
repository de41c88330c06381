"""The documents: the site builds without a warning, each link leads somewhere, concepts have pictures."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

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


PICTURES = sorted((ROOT / "docs/pictures").iterdir())
LISTS_OF_CASES = {"fidelity", "limits"}
"""Concept pages that have tables only."""

_PICTURE = re.compile(r"!\[([^\]]+)\]\(([^)\s]+)\)")
SVG = "{http://www.w3.org/2000/svg}"
ELEMENTS = {"svg", "title", "desc", "style", "marker", "path", "rect", "circle", "text", "tspan"}
"""Elements of pictures. None runs a script or loads a file."""
MAX_PICTURE_BYTES = 6000
MIN_TEXT_PIXELS = 13
PHONE_PIXELS = 328
"""Width of a picture in a window of 360 px."""


def pictures(document: Path) -> set[Path]:
    return {(document.parent / path).resolve() for _, path in _PICTURE.findall(document.read_text())}


def faults(picture: str) -> Iterator[str]:
    """Yield what is wrong with an SVG file. Raises ParseError unless it is well-formed XML."""
    root = ElementTree.fromstring(picture)
    for name in ("title", "desc"):
        if not (root.findtext(SVG + name) or "").strip():
            yield f"no {name}"
    for element in root.iter():
        if element.tag not in {SVG + name for name in ELEMENTS}:
            yield f"element {element.tag.removeprefix(SVG)}"
        for attribute in element.attrib:
            if re.search(r"^on|href$|^style$|^font", attribute):
                yield f"attribute {attribute}"
    yield from re.findall(r"@import|url\([^#].*?\)", picture)
    width = float(root.get("viewBox", "").split()[2])
    for size in map(int, re.findall(r"(\d+)px", picture)):
        if size * PHONE_PIXELS / width < MIN_TEXT_PIXELS:
            yield f"text of {size} px"
    if len(picture.encode()) > MAX_PICTURE_BYTES:
        yield "too large"


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.stem)
def test_each_picture_is_small_legible_and_described_and_loads_nothing(picture: Path) -> None:
    assert list(faults(picture.read_text())) == []


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("<title>", "<title/><title>", "no title"),
        ("desc>", "metadata>", "no desc"),
        ("</svg>", "<script>alert(1)</script></svg>", "element script"),
        ("</svg>", '<path onclick="alert(1)"/></svg>', "attribute onclick"),
        ("</svg>", '<text font-size="9">a</text></svg>', "attribute font-size"),
        ("#tip)", "other.svg#tip)", "url(other.svg#tip)"),
        ("24px", "20px", "text of 20 px"),
        ("</desc>", f"{'long' * 1000}</desc>", "too large"),
    ],
)
def test_a_fault_of_a_picture_is_found(before: str, after: str, fault: str) -> None:
    picture = PICTURES[0].read_text()
    assert before in picture
    assert fault in faults(picture.replace(before, after))


def test_all_pictures_have_the_same_boxes_arrows_and_colours() -> None:
    styles = {re.search(r"<style>.*</marker>", each.read_text(), re.DOTALL) for each in PICTURES}
    assert len({style and style[0] for style in styles}) == 1


def test_each_picture_is_on_a_page() -> None:
    shown = {picture for document in documents() for picture in pictures(document)}
    assert set(PICTURES) - shown == set()


@pytest.mark.parametrize("page", sorted((ROOT / "docs/concepts").glob("*.md")), ids=lambda page: page.stem)
def test_each_concept_has_a_picture_in_place_of_a_drawing_in_text(page: Path) -> None:
    assert bool(pictures(page)) == (page.stem not in LISTS_OF_CASES)
    assert not re.search("[┌└├│▶◀▼▲]", page.read_text())


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
