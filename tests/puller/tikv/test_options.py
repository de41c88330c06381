"""How a TiKV cluster is reached and followed: what is accepted."""

from __future__ import annotations

import pytest

from tidemill.config import checked
from tidemill.errors import ConfigError
from tidemill.puller.tikv.options import TikvOptions, endpoints


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("tikv://pd1:2379,pd2:2380", ("pd1:2379", "pd2:2380")),
        ("pd1:2379, pd2:2379", ("pd1:2379", "pd2:2379")),
        ("http://10.0.0.1:2379,https://10.0.0.2:2379/", ("10.0.0.1:2379", "10.0.0.2:2379")),
        ("tikv://[::1]:2379", ("[::1]:2379",)),
        ("tikv://pd1:2379,pd1:2379/", ("pd1:2379",)),
    ],
)
def test_addresses_of_pd_are_read_from_a_url_or_a_list(text, found):
    assert endpoints(text) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at least one address"),
        ("tikv://", "at least one address"),
        ("pd1", r"source.pd = 'pd1': an address is host:port"),
        ("tikv://pd1:", "the port is a number from 1 to 65535"),
        ("pd1:0", "the port is a number from 1 to 65535"),
        ("pd1:70000", "the port is a number from 1 to 65535"),
        ("user@pd1:2379", "it has no user and no password: addresses are host:port"),
        ("::1:2379", "an address is host:port"),
        ("pd1:2379/path", "an address is host:port|the port is a number"),
    ],
)
def test_what_is_no_address_is_named(text, message):
    with pytest.raises(ConfigError, match=message):
        endpoints(text)


@pytest.mark.parametrize(
    ("field", "value", "least"),
    [
        ("cluster_id", -1, 0),
        ("start_ts", -1, 0),
        ("region_scan_limit", 0, 1),
        ("region_batch", 0, 1),
        ("timeout_seconds", 0, 0.1),
        ("gc_ttl_seconds", 0, 1),
        ("max_receive_bytes", 10, 1 << 20),
        ("streams_per_connection", 0, 1),
    ],
)
def test_a_number_that_is_too_small_is_refused_naming_the_field(field, value, least):
    with pytest.raises(ConfigError, match=rf"^source\.{field}: expected `(int|float)` >= {least}"):
        checked(TikvOptions(pd=("pd1:2379",), **{field: value}), "source")


def test_options_need_an_address_of_pd():
    with pytest.raises(ConfigError, match=r"source\.pd: at least one address"):
        TikvOptions(pd=())
    with pytest.raises(ConfigError, match=r"source\.pd = 'pd1'"):
        TikvOptions(pd=("pd1",))


def test_the_defaults_are_tiflows():
    options = TikvOptions(pd=("pd1:2379",))
    assert options.region_scan_limit == 40
    assert options.region_batch == 20
    assert options.region_retry_seconds == 60
    assert options.dial_seconds == 10
    assert options.stream_window_bytes == 8 << 20  # theirs, 65,535, has a message come in many parts
    assert options.max_receive_bytes == 256 << 20
    assert options.streams_per_connection == 1000
    assert options.idle_seconds == 600
    assert options.gc_ttl_seconds == 86_400
