"""Options of pumps: addresses, and refusals that name the option."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.config import checked
from tidemill.errors import ConfigError
from tidemill.puller.pump.options import PumpOptions, pump_addresses


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("pump://a:8250", ("a:8250",)),
        ("pump://a,b:8251/", ("a:8250", "b:8251")),
        ("pump://a:1,a:1", ("a:1",)),
        ("pump://[::1]:9,[::2]", ("[::1]:9", "[::2]:8250")),
    ],
)
def test_addresses_of_a_url_have_the_pumps_port_by_default(url, wanted):
    assert pump_addresses(url) == wanted


@pytest.mark.parametrize("url", ["pump://", "pump://a:b", "pump://a:0", "pump://user@a:1"])
def test_a_url_without_addresses_is_refused(url):
    with pytest.raises(ConfigError, match=r"^source\.url"):
        pump_addresses(url)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"on_disorder": "ignore"}, "source.on_disorder: 'ignore' is none of 'stop', 'drop'"),
        ({"compression": "zstd"}, "source.compression: 'zstd' is none of 'none', 'gzip'"),
        ({"retry_seconds": 0}, "source.retry_seconds: expected `float` >= 0.01"),
        ({"pumps": ("a",)}, "source.pumps = 'a': an address is host:port"),
        ({"pd": ()}, "source.pd: missing: pump:// names the pumps only"),
        ({"pumps": ("a:1",), "registry": "sqlite:///r.db"}, "source.registry: pump:// names the pumps; "),
        ({"listen": "8249"}, "source.listen = '8249': an address is"),
        (
            {"ca_path": Path("ca.pem")},
            "source.cert_path is missing: with ca_path the drainer's",
        ),
    ],
)
def test_an_option_out_of_range_is_refused(options, said):
    with pytest.raises(ConfigError) as error:
        checked(PumpOptions(**{"pd": ("pd:2379",), **options}), "source")
    assert str(error.value).startswith(said)


def test_the_registry_is_pds_unless_another_is_named():
    assert PumpOptions(pd=("a:1", "b:2")).drainer.registry == "binlog://a:1,b:2"
    options = PumpOptions(pd=("a:1",), registry="sqlite:///r.db", node_id="d1", heartbeat_seconds=0.5)
    found = options.drainer
    assert (found.registry, found.node_id, found.heartbeat_seconds) == ("sqlite:///r.db", "d1", 0.5)
