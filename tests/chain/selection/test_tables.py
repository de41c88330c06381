import pytest

from tidemill.chain.selection.tables import TablePatterns, named
from tidemill.errors import ConfigError


@pytest.mark.parametrize(
    ("patterns", "followed", "left_out"),
    [
        (["shop.*"], ["shop.a", "shop.tmp_a"], ["shopping.a", "Shop.a", "bank.a"]),
        (["shop.*", "!shop.tmp_*"], ["shop.a"], ["shop.tmp_a"]),
        (["shop.*", "!shop.tmp_*", "shop.tmp_keep"], ["shop.tmp_keep"], ["shop.tmp_x"]),
        (["!shop.a", "shop.*"], ["shop.a"], []),
        (["*.orders"], ["a.orders", "b.orders"], ["a.order"]),
        (["s?op.a.b"], ["shop.a.b"], ["shop.a", "sop.a.b"]),
        (["a+b.(c)"], ["a+b.(c)"], ["aab.(c)"]),
    ],
)
def test_the_last_pattern_that_matches_decides(patterns, followed, left_out):
    matches = TablePatterns.parse(patterns).matches
    assert [name for name in followed if not matches(*name.split(".", 1))] == []
    assert [name for name in left_out if matches(*name.split(".", 1))] == []


@pytest.mark.parametrize("pattern", ["shop", "shop.", ".orders", "!", "!shop"])
def test_a_pattern_without_both_names_is_refused_with_an_example(pattern):
    with pytest.raises(ConfigError, match=r"shop\.\*"):
        TablePatterns.parse([pattern])


@pytest.mark.parametrize("pattern", ["/^tmp/.*", "!/^tmp/.*", "/^tmp.*/.*", "shop./^t.*/", "!shop./^t/"])
def test_a_regular_expression_is_refused(pattern):
    with pytest.raises(
        ConfigError, match=r"has a regular expression between slashes, which isn't accepted: write"
    ):
        TablePatterns.parse([pattern])


def test_a_slash_may_be_in_a_name():
    assert TablePatterns.parse(["a/b.c/d", "/x.y"]).matches("/x", "y")


def test_a_pattern_in_another_case_is_named_with_the_table():
    tables = [("Shop", "Orders"), ("bank", "a")]
    assert named(["shop.o*", "bank.b"], tables) == (
        "'shop.o*' (there is Shop.Orders, but upper and lower case differ), 'bank.b'"
    )


def test_no_pattern_at_all_is_refused():
    with pytest.raises(ConfigError, match="no pattern"):
        TablePatterns.parse([])


def test_patterns_that_match_nothing_are_named_exclusions_apart():
    table_filter = TablePatterns.parse(["shop.*", "bank.*", "!shop.tmp_*"])
    assert table_filter.unmatched([("shop", "a")]) == ["bank.*"]


def test_a_schema_is_touched_only_by_patterns_that_include():
    table_filter = TablePatterns.parse(["shop.a*", "!bank.*"])
    assert table_filter.touches("shop")
    assert not table_filter.touches("bank")


def test_names_after_a_tilde_are_regular_expressions():
    tables = TablePatterns.parse(["~shop_[0-9]+.~orders_.{2}", "bank.~a|b"])
    assert tables.matches("shop_12", "orders_xy")
    assert not tables.matches("shop_x", "orders_xy")
    assert not tables.matches("shop_12", "orders_xyz")
    assert [name for name in ("a", "b", "ab") if tables.matches("bank", name)] == ["a", "b"]
    with pytest.raises(ConfigError, match=r"^tables = '~\(': not a regular expression"):
        TablePatterns.parse(["shop.~("])
    with pytest.raises(ConfigError, match=r"^tables: '~shop\.\*\.orders': the first dot ends the schema's"):
        TablePatterns.parse(["~shop.*.orders"])
