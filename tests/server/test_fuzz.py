"""Requests drawn from the OpenAPI document, valid and not: no error of the server, no change by a refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode

from tidemill.client import Client
from tidemill.server.api import Api
from tidemill.server.asgi import application
from tidemill.server.events import Broadcast
from tidemill.server.openapi import openapi
from tidemill.server.operation import operations
from tidemill.server.registry import Registry
from tidemill.server.security import Access
from tidemill.server.serving import HttpServer
from tidemill.server.targets import TargetApi

DOCUMENT = openapi(
    operations(Api(Registry()), TargetApi(Registry()), Broadcast(Registry()))  # none of them is started
)
OPERATIONS = {
    one.definition.raw["operationId"]: one
    for result in schemathesis.openapi.from_dict(DOCUMENT).get_all_operations()
    for one in [result.ok()]
}
MISTAKABLE = {name for name, one in OPERATIONS.items() if [*one.body] or [*one.query]}
"""Operations with a body or a query: nothing else of a request can be invalid."""
DOCUMENTED = ("create_feed", "replace_feed", "check")
"""Their bodies are documents: a valid one would be a feed that writes wherever it says."""
FEED = {
    "name": "shop",
    "source": {"url": "mysql://127.0.0.1:9", "tables": ["shop.*"]},
    "sink": [{"name": "copy", "url": "sqlite:///copy.db"}],
}
EXAMPLES = settings(
    max_examples=40,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[*HealthCheck],
)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    """A server with a feed, which is paused."""
    directory: Path = tmp_path_factory.mktemp("fuzzed")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        registry = Registry(directory=directory / "feeds")
        server = HttpServer(application(registry, Access()), "127.0.0.1:0")
        with registry, server:
            registry.create(FEED, "test")
            registry.managed("shop").pause("test")
            yield server.url, directory
        server.close()


def state(directory: Path) -> dict[str, Any]:
    """Return what users have stored: documents and wishes."""
    files = [*(directory / "feeds").glob("*.toml"), *(directory / "feeds" / ".tidemill").glob("*.json")]
    return {path.name: path.read_bytes() for path in files}


def check(case: Any, url: str, directory: Path) -> None:
    before = state(directory)
    response = case.call(base_url=url, timeout=60)
    where = f"{case.method} {case.path}: {response.status_code} {response.text[:300]}"
    assert response.status_code < 500 or response.status_code in (502, 503), where
    assert "Traceback" not in response.text, where
    described = OPERATIONS[case.operation.definition.raw["operationId"]].definition.raw["responses"]
    if response.status_code not in (404, 405):  # an odd path may be no operation's
        assert str(response.status_code) in described, where
    if response.status_code >= 400:
        error = response.json()["error"]
        assert error["code"], where
        assert error["message"], where
        assert state(directory) == before, where


@pytest.mark.parametrize("name", sorted(MISTAKABLE - {"events"}))
def test_wrong_requests_are_refused_and_change_nothing(fuzzed, name) -> None:
    url, directory = fuzzed

    @given(OPERATIONS[name].as_strategy(GenerationMode.NEGATIVE))
    @EXAMPLES
    def run(case: Any) -> None:
        check(case, url, directory)

    run()


@pytest.mark.parametrize("name", sorted(set(OPERATIONS) - {"events", "delete_feed", *DOCUMENTED}))
def test_requests_as_described_are_answered_as_described(fuzzed, name) -> None:
    url, directory = fuzzed
    parts = {"path_parameters": {"feed": "shop"}} if "{feed}" in OPERATIONS[name].path else {}
    if len(OPERATIONS[name].path_parameters) > 1:
        parts = {}  # the other ones are drawn

    @given(OPERATIONS[name].as_strategy(GenerationMode.POSITIVE, **parts))
    @EXAMPLES
    def run(case: Any) -> None:
        if "feed" in (case.path_parameters or {}):
            case.path_parameters["feed"] = "shop"
        check(case, url, directory)

    run()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = [
    "name",
    "source",
    "sink",
    "sorter",
    "filter",
    "transform",
    "on_ddl",
    "route",
    "sharding",
    "until",
    "capture",
]


@given(
    document=st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=8), JSON, max_size=4),
    verb=st.sampled_from(
        [("POST", "/api/v1/feeds"), ("PUT", "/api/v1/feeds/shop"), ("POST", "/api/v1/check")]
    ),
)
@settings(EXAMPLES, max_examples=300)
def test_documents_of_any_form_are_refused(fuzzed, document, verb) -> None:
    from http.client import HTTPConnection

    url, directory = fuzzed
    before = state(directory)
    connection = HTTPConnection(url.partition("://")[2], timeout=60)
    name = "shop" if verb[0] == "PUT" else "other"
    body = json.dumps({**FEED, "name": name, **document}).encode()
    if "source" not in document and "sink" not in document and verb[1] != "/api/v1/feeds/shop":
        body = json.dumps(document).encode()
    connection.request(*verb, body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    if response.status in (200, 201):  # it was a good one
        assert {**FEED, **document}["name"] in ("shop", "other")
        client = Client(url)
        if verb[1] == "/api/v1/feeds":
            client.delete("other")
        elif verb[0] == "PUT":
            client.replace("shop", FEED)
        return
    assert response.status in (400, 422), (answer, body)
    assert answer["error"]["message"]
    assert state(directory) == before
