"""Conditions in SQL of MySQL."""

import pytest

from tidemill.dialects.mysql.text import compile_where
from tidemill.events import Column, Table

DOCUMENTS = Table("shop", "documents", (Column("d", "json"),))
PRINTED = "CAST(CONVERT(`d` USING utf8mb4) AS BINARY)<=>"


@pytest.mark.parametrize(
    ("native_json", "value", "condition"),
    [
        (False, "[1.50]", f"{PRINTED}x'5b312e35305d'"),
        (True, "[1.50]", f"{PRINTED}CAST(CONVERT(CAST('[1.50]' AS JSON) USING utf8mb4) AS BINARY)"),
        (True, None, f"{PRINTED}CAST(CONVERT(CAST(NULL AS JSON) USING utf8mb4) AS BINARY)"),
    ],
)
def test_a_document_is_compared_as_the_server_prints_it(native_json, value, condition):
    assert compile_where(DOCUMENTS, native_json=native_json)([(value,)]) == [condition]
