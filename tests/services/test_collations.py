"""Forms of texts, compared with the order in which real servers have the texts."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from tidemill.events import form_of, text_of
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb118 import MariaDb118
from tidemill.testing.mysql import MySql
from tidemill.testing.private_server import PrivateServer

POINTS = [*range(0xD800), *range(0xE000, 0x10000), 0x10000, 0x1F600, 0x10FFFF]
COLLATIONS = {
    "utf8mb4_general_ci": "utf8",
    "utf8mb4_bin": "utf8",
    "latin1_swedish_ci": "cp1252",
    "latin1_bin": "cp1252",
    "ascii_general_ci": "ascii",
}
OF_MARIADB = {"utf8mb4_general_nopad_ci": "utf8", "latin1_swedish_nopad_ci": "cp1252"}
SOME = "aAäÄÅåàbBßsSzZ_[\\] \t\0~1ÿyYÜüøØðÐþ€"


@pytest.fixture(params=["MariaDB 10.11", "MariaDB 11.8", "MySQL 9.7"])
def server(request: pytest.FixtureRequest) -> PrivateServer:
    kinds = {"MariaDB 10.11": "mariadb", "MariaDB 11.8": "mariadb118", "MySQL 9.7": "mysql97"}
    found = request.getfixturevalue(kinds[request.param])
    assert isinstance(found, (MariaDb, MariaDb118, MySql))
    return found


def test_every_character_has_the_weight_that_the_server_gives_it(server: PrivateServer) -> None:
    form = form_of("utf8mb4_general_nopad_ci")
    assert form is not None
    text = "".join(map(chr, POINTS))
    with server.connect() as connection, connection.cursor() as cursor:
        literal = f"_utf8mb4 x'{text.encode().hex()}' COLLATE utf8mb4_general_ci"
        cursor.execute(f"SELECT HEX(WEIGHT_STRING({literal}))")
        ((weights,),) = cursor.fetchall()
    assert bytes.fromhex(weights).decode("utf-16-be", "surrogatepass") == form(text)


@pytest.mark.parametrize("seed", range(2))
def test_texts_are_in_the_server_s_order(server: PrivateServer, seed: int) -> None:
    random = Random(seed)
    collations = COLLATIONS if isinstance(server, MySql) else COLLATIONS | OF_MARIADB
    for collation, encoding in collations.items():
        form = form_of(collation)
        assert form is not None
        signs = [sign for sign in SOME if sign.encode(encoding, "replace").decode(encoding) == sign]
        signs += ["é", "日", "\U0001f600", "\u0345"] if encoding == "utf8" else []
        texts = list({"".join(random.choices(signs, k=random.randrange(5))) for _ in range(300)})
        texts.sort(key=form)
        literals = [f"_{collation.partition('_')[0]} x'{text.encode(encoding).hex()}'" for text in texts]
        equals = [
            f"_{collation.partition('_')[0]} x'{text_of(collation, form(text)).hex()}'" for text in texts
        ]
        pairs = [*zip(literals, equals, strict=True), *pairwise(literals)]
        signs_between = ["=" if form(one) == form(other) else "<" for one, other in pairwise(texts)]
        wanted = ["="] * len(texts) + signs_between
        compared = (
            f"{one} COLLATE {collation} {sign} {other}"
            for (one, other), sign in zip(pairs, wanted, strict=True)
        )
        (found,) = server.execute(f"SELECT {', '.join(compared)}")
        assert all(found), collation
