"""Messages about a store's key errors."""

from __future__ import annotations

import pytest

from tidemill.codec.proto import kvrpcpb
from tidemill.puller.tikv.kv.key_error import sentence

MESSAGES = [field.name for field in kvrpcpb.KeyError.DESCRIPTOR.fields if field.message_type is not None]


@pytest.mark.parametrize("name", MESSAGES)
def test_an_error_is_named(name):
    error = kvrpcpb.KeyError()
    getattr(error, name).SetInParent()
    assert sentence(error) == f"{name} ()"


def test_what_an_error_carries_is_on_one_line():
    error = kvrpcpb.KeyError(commit_ts_expired={"start_ts": 5, "key": b"k", "min_commit_ts": 9})
    assert sentence(error) == 'commit_ts_expired (start_ts: 5 key: "k" min_commit_ts: 9)'


def test_a_sentence_of_the_store_is_repeated():
    assert sentence(kvrpcpb.KeyError(retryable="try again")) == "try again"
    both = kvrpcpb.KeyError(retryable="not there", txn_lock_not_found={"key": b"k"})
    assert sentence(both) == 'not there; txn_lock_not_found (key: "k")'


def test_an_error_of_a_newer_store_is_said_to_be_unknown():
    newer = kvrpcpb.KeyError.FromString(b"\x9a\x06\x00")
    assert sentence(newer) == "an error of an unknown kind"
