from tidemill.sink.safe_mode import AFTER_START, CONFIGURED, SafeMode


def test_it_is_active_while_there_is_any_reason():
    mode = SafeMode()
    assert not mode.is_active
    mode.enter(CONFIGURED)
    mode.enter(AFTER_START)
    assert mode.reasons == {"after start": 1, "configured": 1}
    mode.leave(CONFIGURED)
    assert mode.is_active
    mode.leave(AFTER_START)
    assert (mode.is_active, mode.reasons) == (False, {})


def test_a_reason_that_is_entered_twice_is_left_twice():
    mode = SafeMode()
    mode.enter("a lock")
    mode.enter("a lock")
    assert mode.reasons == {"a lock": 2}
    mode.leave("a lock")
    assert mode.is_active
    mode.leave("a lock")
    assert not mode.is_active
