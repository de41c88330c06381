"""The JSON Schema of a feed.toml, against the documents' examples and mistakes in them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^```toml\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    command = [sys.executable, "-m", "tidemill.cli", "schema"]
    schema = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def feeds() -> list[Any]:
    """Return the TOML blocks of the documents that are whole feeds."""
    found = []
    for document in DOCUMENTS:
        for number, block in enumerate(_BLOCK.findall(document.read_text()), 1):
            tables = tomllib.loads(block)
            if "url" in tables.get("source", {}):
                found.append(pytest.param(tables, id=f"{document.name} {number}"))
    return found


def test_there_are_examples() -> None:
    assert len(feeds()) >= 3


@pytest.mark.parametrize("feed", feeds())
def test_examples_of_the_documents_fit(validator: Draft202012Validator, feed: dict[str, Any]) -> None:
    assert [error.message for error in validator.iter_errors(feed)] == []


@pytest.mark.parametrize(
    "feed",
    [
        {"source": {"url": "mysql://db"}, "sorter": {"engin": "db"}},
        {"source": {"url": "mysql://db"}, "sorter": {"engine": "redis"}},
        {"source": {"url": "mysql://db", "port": 70_000}},
        {"source": {"url": "mysql://db"}, "sink": [{"url": "sqlite:///a.db", "schema": "x"}]},
        {"source": {"url": "mysql://db"}, "sorter": {"memory_bytes": "64 megabytes"}},
        {"source": {"url": "mysql://db"}, "on_ddl": [{"tables": ["a.*"], "action": "forget"}]},
        {"sink": []},
    ],
    ids=str,
)
def test_mistakes_do_not(validator: Draft202012Validator, feed: dict[str, Any]) -> None:
    assert not validator.is_valid(feed)


def test_every_property_is_described(validator: Draft202012Validator) -> None:
    schema: Any = validator.schema
    sections = [schema["properties"][name] for name in ("sorter", "sharding")]
    sections += schema["properties"]["sink"]["items"]["anyOf"]
    undescribed = {
        name
        for section in sections
        for name, one in section["properties"].items()
        if "description" not in one
    }
    common = {"name", "url", "urls", "split_by", "regex", "black_regex", "relay", "rows"}
    assert undescribed - common <= {"format"}
