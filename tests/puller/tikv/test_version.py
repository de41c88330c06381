"""Which clusters are new enough."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tidemill.errors import SourceError
from tidemill.puller.tikv.pd.version import Version, check, parse
from tidemill.puller.tikv.topology import StoreInfo


def store(version, *, labels=(), state=0):
    return StoreInfo(1, "tikv1:20160", version, labels, state)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("6.1.0", Version(6, 1, 0)),
        ("v6.1.0", Version(6, 1, 0)),
        ("6.1.0-alpha", Version(6, 1, 0, "alpha")),
        ("v6.1.0-alpha-13-gabc1234", Version(6, 1, 0, "alpha")),
        ("6.1.0-alpha-241-g0123456789abcdef-dev", Version(6, 1, 0, "alpha")),
        ("v7.5.0-dirty", Version(7, 5, 0)),
        ("v7.5.1-20240301-fips", Version(7, 5, 1, "20240301")),
        ("v8.1.0-rc.1", Version(8, 1, 0, "rc.1")),
    ],
)
def test_a_version_is_read_without_what_says_which_build_it_is(text, version):
    assert parse(text) == version


@pytest.mark.parametrize("text", ["", "latest", "6.1", "6.1.x", "-6.1.0"])
def test_what_is_no_version_is_none(text):
    assert parse(text) is None


def test_versions_are_ordered_as_semantic_versions():
    texts = [
        "5.0.0",
        "5.1.0-alpha",
        "5.1.0-alpha.1",
        "5.1.0-beta",
        "5.1.0-rc.2",
        "5.1.0-rc.10",
        "5.1.0",
        "10.0.0",
    ]
    versions = [parse(text) for text in texts]
    assert all(a < b and not b < a for a, b in pairwise(versions))


def test_the_least_version_of_the_stores_counts():
    assert check([store("8.1.0"), store("v6.1.0"), store("7.5.0")]) == Version(6, 1, 0)


def test_a_store_that_is_too_old_is_refused_naming_both_versions():
    with pytest.raises(
        SourceError, match=r"TiKV 5\.0\.6 at tikv1:20160 is too old: 5\.1\.0-alpha or later is needed"
    ):
        check([store("8.1.0"), store("v5.0.6")])


def test_the_first_alpha_of_the_least_version_is_new_enough():
    assert check([store("v5.1.0-alpha")]) == Version(5, 1, 0, "alpha")


def test_a_store_from_the_future_is_refused():
    with pytest.raises(
        SourceError, match=r"TiKV 10\.0\.0 .* is too new: only versions before 10\.0\.0 are known"
    ):
        check([store("10.0.0")])


def test_a_store_without_a_version_is_refused():
    with pytest.raises(SourceError, match="TiKV at tikv1:20160 reports '', which is not a version"):
        check([store("")])


def test_pd_is_checked_too_unless_it_does_not_say():
    with pytest.raises(SourceError, match=r"PD 4\.0\.0 at pd-1 is too old"):
        check([store("8.1.0")], {"pd-0": "", "pd-1": "v4.0.0"})
    assert check([store("8.1.0")], {"pd-0": ""}) == Version(8, 1, 0)


def test_tiflash_and_removed_stores_are_no_matter():
    tiflash = store("4.0.0", labels=(("engine", "tiflash"),))
    removed = store("4.0.0", state=2)
    assert check([tiflash, removed, store("8.1.0")]) == Version(8, 1, 0)
    with pytest.raises(SourceError, match="no TiKV store"):
        check([tiflash, removed])
