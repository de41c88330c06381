"""TLS towards PD and the stores: what works, and what a person reads when it doesn't."""

from __future__ import annotations

import shutil

import grpc
import pytest

from tidemill.emulator.cluster import Cluster
from tidemill.emulator.server import Tls
from tidemill.errors import ConfigError, Retryable, SourceError
from tidemill.puller.grpc.security import Security
from tidemill.testing.certificates import Authority

from .client import client
from .scripted import ScriptedPd, served


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls") / "ca")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls") / "stranger")


@pytest.fixture(scope="module")
def server(authority):
    return authority.issue("server")


@pytest.fixture(scope="module")
def ours(authority):
    certificate, key = authority.issue("tidemill")
    return {"ca_path": authority.ca, "cert_path": certificate, "key_path": key}


@pytest.fixture
def cluster(authority, server):
    certificate, key = server
    tls = Tls(ca_path=authority.ca, cert_path=certificate, key_path=key)
    with Cluster(stores=1, tls=tls) as cluster:
        yield cluster


def refused(address, **options):
    """The error of a client that can't connect."""
    with (
        pytest.raises((SourceError, Retryable)) as caught,
        client(address, pd_retry_seconds=0.0, **options),
    ):
        pass
    return caught.value


def test_a_cluster_with_tls_is_read_by_a_client_with_a_certificate(cluster, ours):
    ts = cluster.write([("put", b"k", b"v")])
    with client(cluster.pd_address, **ours) as c:
        assert c.run(c.pd.tso()) > ts
        assert c.run(c.kv.get(b"k", ts)) == b"v"


def test_a_server_of_another_authority_is_refused(cluster, ours, stranger):
    error = refused(cluster.pd_address, **ours | {"ca_path": stranger.ca})
    assert isinstance(error, SourceError)
    assert f"{cluster.pd_address}: GetMembers: no TLS connection: its certificate is not" in str(error)


def test_a_server_that_wants_our_certificate_says_so(cluster, authority):
    error = refused(cluster.pd_address, ca_path=authority.ca)
    assert "cert_path and key_path" in str(error)


def test_a_server_that_does_not_know_our_authority_says_so(cluster, authority, stranger):
    certificate, key = stranger.issue("stranger")
    error = refused(cluster.pd_address, ca_path=authority.ca, cert_path=certificate, key_path=key)
    assert "cert_path" in str(error)


def test_a_client_without_tls_is_told_what_may_be_missing(cluster):
    error = refused(cluster.pd_address)
    assert isinstance(error, Retryable)
    assert "ca_path" in str(error)


def test_a_server_without_tls_is_recognised(ours):
    with Cluster(stores=1) as cluster:
        error = refused(cluster.pd_address, **ours)
    assert isinstance(error, SourceError)
    assert "it doesn't speak TLS" in str(error)


def test_a_certificate_for_another_address_is_refused(authority):
    certificate, key = authority.issue("elsewhere", "DNS:pd.example")
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    pd = ScriptedPd()
    with served(pd, credentials=credentials):
        error = refused(pd.address, ca_path=authority.ca)
    assert isinstance(error, SourceError)
    assert "its certificate is for another host name or address" in str(error)


def test_without_files_nothing_is_encrypted():
    assert Security().credentials() is None


@pytest.mark.parametrize("field", ["ca_path", "cert_path", "key_path"])
def test_a_missing_file_is_named_with_its_field(ours, tmp_path, field):
    with pytest.raises(ConfigError, match=rf"source\.{field} = '.*nothing\.pem' can't be read: No such file"):
        Security(**ours | {field: tmp_path / "nothing.pem"}).credentials()


@pytest.mark.parametrize("field", ["cert_path", "key_path"])
def test_a_certificate_and_its_key_come_together(ours, field):
    with pytest.raises(
        ConfigError, match=rf"source\.{field} is missing: a certificate and its key come together"
    ):
        Security(**ours | {field: None}).credentials()


@pytest.mark.parametrize("field", ["cert_path", "key_path"])
def test_a_certificate_without_an_authority_is_refused(ours, field):
    with pytest.raises(ConfigError, match=rf"source\.{field} is set without ca_path"):
        Security(**{field: ours[field]}).credentials()


def test_a_key_of_another_certificate_is_named(ours, server):
    with pytest.raises(ConfigError, match=r"key_path = '.*server\.key' is not the key of cert_path"):
        Security(**ours | {"key_path": server[1]}).credentials()


def test_files_that_are_not_in_pem_form_are_named(ours, tmp_path):
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("no certificate")
    with pytest.raises(ConfigError, match=r"ca_path = '.*garbage\.pem' holds no certificate in PEM form"):
        Security(ca_path=garbage).credentials()
    with pytest.raises(ConfigError, match=r"cert_path = '.*garbage\.pem' and key_path = '.*' are not"):
        Security(**ours | {"cert_path": garbage}).credentials()


def test_an_authority_file_is_taken_whole(cluster, authority, stranger, ours, tmp_path):
    both = tmp_path / "both.pem"
    with both.open("wb") as file:
        for path in (stranger.ca, authority.ca):
            with path.open("rb") as one:
                shutil.copyfileobj(one, file)
    with client(cluster.pd_address, **ours | {"ca_path": both}) as c:
        assert c.pd.cluster_id == cluster.options.cluster_id
