from __future__ import annotations

import pytest

from tidemill.config.url import PERCENT_ENCODE
from tidemill.dialects.address import Address, parsed
from tidemill.dialects.mysql.connection import connector
from tidemill.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("sqlite:///here.db", Address(scheme="sqlite", database="here.db")),
        ("sqlite:////var/a b%20.db", Address(scheme="sqlite", database="/var/a b .db")),
        ("mysql://h", Address(scheme="mysql", host="h")),
        (
            "mysql+pymysql://a%40b:p%2Fq%3A@h:3307/shop?ssl_ca=%2Fca.pem&x=a+b",
            Address(
                scheme="mysql",
                driver="pymysql",
                user="a@b",
                password="p/q:",
                host="h",
                port=3307,
                database="shop",
                query={"ssl_ca": "/ca.pem", "x": "a b"},
            ),
        ),
        ("mysql://u:@h:/", Address(scheme="mysql", user="u", password="", host="h")),
        (
            "postgresql://[::1]:5433/shop",
            Address(scheme="postgresql", host="::1", port=5433, database="shop"),
        ),
        (
            "mysql:///shop?unix_socket=/s",
            Address(scheme="mysql", database="shop", query={"unix_socket": "/s"}),
        ),
    ],
)
def test_a_url_is_taken_apart(url: str, address: Address) -> None:
    assert parsed(url) == address


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("shop", "'shop' is not a URL of a database"),
        ("u:secret@h", "'u:…@h' is not a URL of a database"),
        ("mysql://u:secret@h:x/", "'x', the port of h, is not a number from 1 to 65535"),
        ("mysql://u:secret@h:70000/", "'70000', the port of h, is not a number"),
        (
            "mysql://u:secret",
            "the port of 'u' is not a number from 1 to 65535; if that is a user with a pass",
        ),
        ("mysql://u:sec@ret@h/", PERCENT_ENCODE),
        ("mysql://h/a/b", "the URL's path is one name, of a database, without a slash: 'a/b'"),
        ("mysql://h/?ssl_ca=a&ssl_ca=b", "ssl_ca is given twice in the URL"),
    ],
)
def test_a_url_that_cannot_be_read_is_refused_without_its_password(url: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        parsed(url)
    assert str(error.value).startswith(sentence)
    assert "sec" not in str(error.value).removeprefix(sentence)


def test_an_address_is_shown_without_its_secrets() -> None:
    assert "secret" not in repr(parsed("mysql://u:secret@h/?password=secret"))


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (
            "chraset=x",
            "chraset in the URL: no such option (accepted: bind_address, connect_timeout, read_default_file, "
            "read_default_group, read_timeout, ssl_ca, ssl_cert, ssl_key, ssl_verify_identity, unix_socket, "
            "write_timeout)",
        ),
        ("read_timeout=soon", "read_timeout = 'soon' in the URL: accepted: a whole number"),
        ("ssl_verify_identity=yes", "ssl_verify_identity = 'yes' in the URL: accepted: true, false"),
    ],
)
def test_options_of_a_mysql_url_are_checked_before_it_connects(query: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        connector(parsed(f"mysql://h/?{query}"))
    assert str(error.value) == sentence
