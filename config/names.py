"""Names that are part of file names: of feeds, sources and sinks."""

from __future__ import annotations

import re
from typing import Annotated, Final, TypeAlias

from msgspec import Meta

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")

NameText: TypeAlias = Annotated[str, Meta(extra_json_schema={"pattern": f"^{NAME.pattern}$"})]
"""Type of a name as it is written."""


def name(text: str, _: str = "") -> str:
    """Return the name. Raises ValueError."""
    if not NAME.fullmatch(text):
        raise ValueError("up to 64 letters, digits, - and _, for it is part of file names")
    return text
