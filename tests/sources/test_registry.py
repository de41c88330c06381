"""A source's section, and errors about missing fields and packages."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tidemill.engine.options import feed_options
from tidemill.errors import ConfigError


def options(**source: object):
    return feed_options({"source": {"tables": ["a.*"], **source}})


def test_a_section_goes_over_its_url():
    found = options(url="mysql://me:secret@db:3307", port=3308, chunk_rows=5).source.options
    assert (found.host, found.port, found.user, found.password) == ("db", 3308, "me", "secret")
    assert found.chunk_rows == 5


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ({}, r'^source\.url: missing; for instance "mysql://.*" or "tikv://'),
        ({"uri": "mysql://db"}, r"^source\.uri: no such key; did you mean 'url'"),
        ({"url": "mysql://db/shop"}, r"^source\.url: ends after host and port"),
        ({"url": "mysql://db:x"}, r"^source\.url: "),
        ({"url": "tikv://pd:2379", "pd": ["b:1"]}, r"^source\.pd: no such key"),
        ({"url": "tikv://pd:2379", "hsot": "b"}, r"^source\.hsot: no such key"),
        ({"url": "mysql://db", "port": 0}, r"^source\.port: expected `int` >= 1"),
    ],
)
def test_a_mistake_is_named_with_what_is_accepted(source, sentence):
    with pytest.raises(ConfigError, match=sentence):
        options(**source)


def test_without_the_driver_it_says_what_to_install():
    code = """if True:
        import sys
        sys.modules["pymysql"] = None
        from tidemill.actors import ManualClock
        from tidemill.engine.opening import open_source
        from tidemill.engine.options import feed_options
        open_source(feed_options({"source": {"url": "mysql://db", "tables": ["a.*"]}}), ManualClock())
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.endswith("ConfigError: source.url: mysql needs: pip install 'tidemill[mysql]'\n")
