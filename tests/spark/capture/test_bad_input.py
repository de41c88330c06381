"""Invalid options of a capture are reported in one sentence, before anything is changed."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from tidemill.errors import ConfigError
from tidemill.spark.capture.access import Access
from tidemill.spark.capture.captures import captures_of
from tidemill.spark.read.options import READ_FORM, read_options
from tidemill.spark.sections import capture_feed
from tidemill.testing.progress import completed

FOUND = {"source": {"url": "mysql://root@127.0.0.1:1", "tables": ["shop.*"]}}
RUNNING = str(Path(__file__).with_name("running.py"))


def parse(found: dict[str, Any] = FOUND, **flags: Any):
    return capture_feed(found, flags).capture


def test_flags_win_over_the_file():
    found = FOUND | {"capture": {"listen": "127.0.0.1:1", "memory_bytes": "1MiB"}, "sink": [{"url": "x"}]}
    options = parse(found, listen="127.0.0.1:2", disk_bytes=None)
    assert (options.listen, options.memory_bytes) == ("127.0.0.1:2", 1 << 20)


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "localhost:8815", "[::1]:8815", "127.9.9.9:1"])
def test_loopback_needs_no_token(listen):
    assert parse(listen=listen).listen == listen


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"listen": "0.0.0.0:8815"}, "0.0.0.0:8815 can be reached from outside: give a token_file"),
        (
            {"listen": "0.0.0.0:8815", "token_file": Path("t")},
            "give tls_cert and tls_key, for the token is sent in clear without them",
        ),
        ({"listen": "[::]:8815"}, "can be reached from outside"),
        ({"listen": "db1:8815"}, "can be reached from outside"),
        ({"listen": "8815"}, 'expected host:port, such as "127.0.0.1:8815"'),
        ({"listen": "127.0.0.1:port"}, "expected host:port"),
        ({"listen": "127.0.0.1:99999"}, "expected host:port"),
        ({"tls_cert": Path("a.pem")}, "tls_cert and tls_key go together"),
        ({"memory_bytes": "64 megabytes"}, "capture.memory_bytes: '64 megabytes' is not a size"),
        ({"memory_bytes": 1}, "capture.memory_bytes: expected `int` >= 65536"),
        ({"lease_seconds": 0}, "capture.lease_seconds: expected `float` > 0"),
        ({"listne": "x"}, "capture.listne: no such key; did you mean 'listen'?"),
    ],
)
def test_options_that_can_not_be(flags, sentence):
    with pytest.raises(ConfigError) as refused:
        parse(**flags)
    assert sentence in str(refused.value)


def test_outside_loopback_a_token_is_enough_over_tls():
    files = {name: Path(name) for name in ("token_file", "tls_cert", "tls_key")}
    assert parse(listen="0.0.0.0:1", **files).listen == "0.0.0.0:1"


def fails(tmp_path: Path, **flags: Any) -> str:
    """Return the error message of a capture that fails."""
    config = tmp_path / "feed.toml"
    config.write_text(
        f'data_dir = "{tmp_path / "state"}"\n'
        '[source]\nurl = "mysql://root:no@127.0.0.1:1"\ntables = ["shop.*"]\n'
        "retry_longest_seconds = 0.1\n"
    )
    done = completed([sys.executable, RUNNING, str(config), json.dumps(flags)])
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("content", [None, "", "two words"])
def test_a_token_file_without_a_token(tmp_path, content):
    token = tmp_path / "token"
    if content is not None:
        token.write_text(content)
    assert f"capture.token_file: {token}: " in fails(tmp_path, token_file=str(token))


def test_a_port_that_is_taken(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        assert f"capture.listen: {listen}: Address already in use" in fails(tmp_path, listen=listen)


def test_certificates_that_are_none(tmp_path):
    pair = {"tls_cert": str(tmp_path / "a.pem"), "tls_key": str(tmp_path / "b.pem")}
    assert f"capture.tls_cert: {tmp_path / 'a.pem'}: No such file" in fails(tmp_path, **pair)
    for path in pair.values():
        Path(path).write_text("nothing")
    assert "capture.tls_cert: " in fails(tmp_path, **pair)


@pytest.mark.parametrize("address", ["db1:8815", "10.0.0.5:8815", "[2001:db8::1]:8815"])
def test_a_token_leaves_the_machine_over_tls_only(tmp_path, address):
    with pytest.raises(ConfigError, match=r"the token isn't sent to .* in clear: use TLS"):
        Access(token="s3cret").connect(address)
    Access(token="s3cret", tls=True).connect(address).close()
    Access().connect(address).close()
    token = tmp_path / "token"
    token.write_text("s3cret")
    given = {"source": "mysql://db/", "tables": "shop.*", "captureTokenFile": str(token)}
    with pytest.raises(ConfigError, match="the token isn't sent to"):
        captures_of(read_options(given | {"capture": f"127.0.0.1:1,{address}"}), READ_FORM)
    assert captures_of(read_options(given | {"capture": "127.0.0.1:1,[::1]:2"}), READ_FORM) is not None


def test_an_address_without_a_port():
    with pytest.raises(ConfigError, match="host:port, not 'db1'"):
        Access().connect("db1")
