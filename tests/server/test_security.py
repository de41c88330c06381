"""Tokens, names of the server, foreign pages, sizes and secrets."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from tidemill.client import Client, Refused
from tidemill.config.secrets import masked, masked_url, unmasked
from tidemill.config.token import read_tokens
from tidemill.engine.options import FeedOptions
from tidemill.errors import ConfigError, Retryable
from tidemill.server.security import MAX_BODY_BYTES, access

TOKEN = "correct-horse-battery-staple"
SECRET = "t0psecret"
JSON = {"Content_Type": "application/json"}


@pytest.fixture
def guarded(serve):
    return serve(access={"tokens": {TOKEN: "alice", "x" * 30: "bob"}})


@pytest.mark.parametrize(
    "shown", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer é"]
)
def test_a_request_without_the_token_is_refused(guarded, shown) -> None:
    headers = {"Authorization": shown.encode().decode("latin-1")} if shown else {}
    for method, path in [
        ("GET", "/api/v1/feeds"),
        ("GET", "/metrics"),
        ("GET", "/ready"),
        ("GET", "/api/v1/events"),
    ]:
        answer = guarded.request(method, path, **headers)
        assert (answer.status, answer.body["error"]["code"]) == (401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"
    assert guarded.request("POST", "/api/v1/feeds", {}, **headers).status == 401


def test_every_path_but_the_page_and_health_needs_the_token(guarded) -> None:
    assert guarded.request("GET", "/health").status == 200
    assert guarded.request("GET", "/").status == 200
    assert guarded.request("GET", "/page/index.html").status == 200
    for path in (
        "/page/../api/v1/feeds",
        "/page%2f..%2fapi/v1/feeds",
        "//api/v1/feeds",
        "/health/../api/v1/feeds",
    ):
        answer = guarded.request("GET", path)
        assert b'feeds":' not in json.dumps(answer.body if isinstance(answer.body, dict) else "").encode()
        assert answer.status in (401, 404)


def test_each_token_is_let_in(guarded) -> None:
    for token in (TOKEN, "x" * 30):
        assert Client(guarded.url, token).feeds() == []
    with pytest.raises(Refused, match="token"):
        Client(guarded.url, "other").feeds()


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8300", "127.0.0.1.evil.example", "", "[::2]:80"]
)
def test_a_name_that_was_rebound_to_this_address_is_refused(served, host) -> None:
    answer = served.request("GET", "/api/v1/feeds", Host=host)
    assert (answer.status, answer.body["error"]["field"]) == (403, "host")


@pytest.mark.parametrize("host", ["localhost", "localhost:99", "127.0.0.1:8300", "[::1]:8300", "LOCALHOST"])
def test_names_of_loopback_are_let_in(served, host) -> None:
    assert served.request("GET", "/api/v1/feeds", Host=host).status == 200


def test_an_allowed_name_is_let_in(serve) -> None:
    served = serve(access={"hosts": ["cdc.example"]})
    assert served.request("GET", "/api/v1/feeds", Host="cdc.example:80").status == 200
    assert served.request("GET", "/api/v1/feeds", Host="evil.example").status == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({**JSON, "Origin": "https://evil.example"}, 403),
        ({**JSON, "Origin": "null"}, 403),
        ({**JSON, "Sec_Fetch_Site": "cross-site"}, 403),
        ({**JSON, "Sec_Fetch_Site": "same-site"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
        ({}, 415),
    ],
)
def test_a_foreign_page_can_change_nothing(served, headers, status) -> None:
    for path in ("/api/v1/feeds", "/api/v1/feeds/shop/pause", "/api/v1/feeds/shop/diff"):
        answer = served.request("POST", path, b'{"name": "x"}', **headers)
        assert answer.status == status
    assert served.client.feeds() == []


def test_its_own_page_can(served) -> None:
    host = served.url.partition("://")[2]
    answer = served.request("POST", "/api/v1/feeds/x/pause", b"{}", **JSON, Origin=f"http://{host}")
    assert answer.status == 404


def test_a_large_body_is_refused_before_it_is_read(served) -> None:
    assert served.request("POST", "/api/v1/feeds", b" " * (MAX_BODY_BYTES + 1), **JSON).status == 413


def test_a_large_body_without_a_length_is_cut_off(served) -> None:
    host, port = served.url.partition("://")[2].split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(
            b"POST /api/v1/feeds HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        chunk = b"%x\r\n%s\r\n" % (1 << 16, b" " * (1 << 16))
        for _ in range(MAX_BODY_BYTES // (1 << 16) + 1):
            connection.sendall(chunk)
        assert connection.recv(64).startswith(b"HTTP/1.1 413")


def test_deep_and_broken_json_is_refused(served) -> None:
    for body in (b"[" * 100_000, b"\xff", b"{", b"", b"[]", b'"x"', b"null", b'{"name": 1e999}'):
        answer = served.request("POST", "/api/v1/feeds", body, **JSON)
        assert answer.status in (400, 422), body[:20]


@pytest.mark.parametrize(
    ("listen", "token", "tls", "refused"),
    [
        ("127.0.0.1:8300", False, False, ""),
        ("[::1]:8300", False, False, ""),
        ("localhost:8300", False, False, ""),
        ("0.0.0.0:8300", False, False, "--token-file"),
        ("10.0.0.1:8300", False, True, "--token-file"),
        ("0.0.0.0:8300", True, False, ""),
        ("127.0.0.1:8300", False, True, "--token-file"),
    ],
)
def test_an_address_that_others_reach_needs_a_token(tmp_path, listen, token, tls, refused) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# people\nalice {TOKEN}\n\n{'y' * 20}\n")
    given = file if token else None
    if refused:
        with pytest.raises(ConfigError, match=refused):
            access(listen, given, has_tls=tls)
    else:
        tokens = access(listen, given, has_tls=tls).tokens
        assert tokens == ({TOKEN: "alice", "y" * 20: "token"} if token else {})


@pytest.mark.parametrize("text", ["", "# nothing\n", "a b c\n", "schlüssel\n", "name short\n"])
def test_a_file_without_good_tokens_is_refused(tmp_path, text) -> None:
    file = tmp_path / "tokens"
    file.write_text(text)
    with pytest.raises(ConfigError, match="--token-file"):
        read_tokens(file, "--token-file")
    assert TOKEN not in repr(access("127.0.0.1:1", _tokens(tmp_path), has_tls=False))


def _tokens(tmp_path: Path) -> Path:
    file = tmp_path / "good"
    file.write_text(TOKEN)
    return file


def test_the_client_sends_no_token_in_clear_to_others() -> None:
    with pytest.raises(ConfigError, match="https"):
        Client("http://example.com:8300", TOKEN)
    for url in ("ftp://x", "http://", "127.0.0.1:80", "http://x:y", "http://h/?q=1"):
        with pytest.raises(ConfigError, match="--server"):
            Client(url)
    with pytest.raises(Retryable, match="no answer"):
        Client("http://127.0.0.1:9").feeds()


# --- secrets


DOCUMENT = {
    "name": "shop",
    "source": {
        "url": f"mysql://repl:{SECRET}@db:3306",
        "password": SECRET,
        "tables": ["a.*"],
        "ssl_key": "k.pem",
    },
    "sink": [
        {"name": "a", "url": f"mysql://u:{SECRET}@h/x?ssl_ca=ca.pem", "table_name": "{table}"},
        {
            "name": "b",
            "url": f"kafka://u:{SECRET}@h/t",
            "encoding": {"schema-registry": f"http://u:{SECRET}@r"},
        },
        {
            "name": "c",
            "url": "s3://bucket/x",
            "access_key": SECRET,
            "secret_key": SECRET,
            "session_token": SECRET,
        },
        {"name": "d", "url": f"postgresql://h/x?password={SECRET}&sslmode=require"},
        {"name": "e", "urls": [f"mysql://u:{SECRET}@h1/", f"mysql://u:{SECRET}@h2/"]},
    ],
    "transform": [{"tables": ["a.b"], "hash": ["c"], "hash_key": SECRET}],
    "spark": {"config": {"spark.some.secret": SECRET}},
    "pasword": SECRET,
    "sorter": {"memory_bytes": "64MiB"},
}


def test_no_secret_of_a_document_is_shown() -> None:
    shown = masked(FeedOptions, DOCUMENT)
    assert SECRET not in json.dumps(shown)
    assert shown["source"] == {
        "url": "mysql://repl:***@db:3306", "password": "***", "tables": ["a.*"], "ssl_key": "k.pem",
    }  # fmt: skip
    assert shown["sink"][0]["url"] == "mysql://u:***@h/x?ssl_ca=ca.pem"
    assert shown["sink"][3]["url"] == "postgresql://h/x?password=***&sslmode=require"
    assert shown["sorter"] == DOCUMENT["sorter"]


def test_what_is_sent_back_as_it_was_shown_keeps_the_secrets() -> None:
    shown = masked(FeedOptions, DOCUMENT)
    assert unmasked(FeedOptions, shown, DOCUMENT) == DOCUMENT
    changed = {**shown, "sink": [{**shown["sink"][2], "region": "x"}, shown["sink"][0]]}
    kept = unmasked(FeedOptions, changed, DOCUMENT)
    assert kept["sink"] == [{**DOCUMENT["sink"][2], "region": "x"}, DOCUMENT["sink"][0]]


def test_a_secret_goes_to_no_other_place() -> None:
    shown = masked(FeedOptions, DOCUMENT)
    shown["source"]["url"] = "mysql://repl:***@evil:3306"
    with pytest.raises(ConfigError, match=r"^source\.url: \*\*\*"):
        unmasked(FeedOptions, shown, DOCUMENT)
    with pytest.raises(ConfigError, match=r"^source\.password: \*\*\*"):
        unmasked(FeedOptions, {"source": {"password": "***"}}, {})


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("mysql://u:p@ss@db/x", "mysql://u:***@db/x"),
        ("mysql://u:${PW}@db", "mysql://u:${PW}@db"),
        ("mysql://u@db", "mysql://***@db"),
        ("mysql://db", "mysql://db"),
        ("u:p@db", "u:***@db"),
        ("mysql:/u:p@db", "mysql:/u:***@db"),
        ("${URL}", "${URL}"),
        ("x://h?password=a&token=${T}", "x://h?password=***&token=${T}"),
    ],
)
def test_a_url_is_shown_without_its_password(url, shown) -> None:
    assert masked_url(url) == shown


def test_a_secret_that_was_put_is_neither_shown_nor_logged(served, tmp_path, caplog) -> None:
    document = {
        "name": "shop",
        "source": {"url": f"mysql://repl:{SECRET}@127.0.0.1:9", "tables": ["a.*"]},
        "sink": [{"url": f"sqlite:///{tmp_path}/x.db"}],
    }
    served.client.create(document)
    served.until("shop", "warning", "failed")
    shown = served.client.feed("shop").options
    served.client.replace("shop", shown)
    stored = (tmp_path / "feeds" / "shop.toml").read_text()
    assert SECRET in stored
    assert (tmp_path / "feeds" / "shop.toml").stat().st_mode & 0o077 == 0
    said = [
        json.dumps(served.request("GET", f"/api/v1/feeds/shop{path}").body)
        for path in ("", "/waits", "/history", "/sinks", "/tables", "/diff")
    ]
    assert SECRET not in "".join(said) + caplog.text
