"""The page and its files, with the headers that keep a browser from everything else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FILES: Final = Path(__file__).parent / "page"
POLICY: Final = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Nothing from elsewhere, nothing inline, no text taken for HTML, and no other page around this one."""
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # asked for again each time, so all files are of one version
}


def index() -> Response:
    """Return the page itself."""
    return FileResponse(FILES / "index.html", headers=HEADERS)


class PageFiles(StaticFiles):
    """The scripts and styles of the page."""

    def __init__(self) -> None:
        super().__init__(directory=FILES)

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update(HEADERS)
        return response
