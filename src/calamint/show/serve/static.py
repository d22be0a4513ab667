"""Files of pages: all of this machine, and Plotly's from its wheel."""

import gzip
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from calamint.show.plots.page import embedded
from calamint.show.plots.style import plotly, template
from calamint.show.serve.answers import UnknownStudyError

router = APIRouter(include_in_schema=False)
_OWN = Path(__file__).parent / "static"
_OF_PLOTS = Path(__file__).parents[1] / "assets"
_KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def _themes() -> bytes:
    themes = {"light": template(), "dark": template(dark=True)}
    return f"const THEMES={embedded(themes)};".encode()


_FILES: dict[str, Callable[[], bytes]] = {
    "dashboard.css": lambda: (_OWN / "dashboard.css").read_bytes(),
    "dashboard.js": lambda: (_OWN / "dashboard.js").read_bytes(),
    "htmx.js": lambda: (_OWN / "htmx.min.js").read_bytes(),
    "icon.svg": lambda: (_OWN / "icon.svg").read_bytes(),
    "page.css": lambda: (_OF_PLOTS / "page.css").read_bytes(),
    "page.js": lambda: (_OF_PLOTS / "page.js").read_bytes(),
    "plotly.js": lambda: plotly("offline").get_plotlyjs().encode(),
    "themes.js": _themes,
}


@cache
def _file(name: str) -> tuple[bytes, str]:
    """A file, compressed, and what changes when it does."""
    content = _FILES[name]()
    return gzip.compress(content, 6), sha256(content).hexdigest()[:16]


def address_of(name: str) -> str:
    """Where browsers find a file, which they keep until it changes."""
    return f"/static/{name}?v={_file(name)[1]}"


@router.get("/static/{name}")
def static(request: Request, name: str) -> Response:
    if name not in _FILES:
        raise UnknownStudyError("there is no such file.")
    packed, tag = _file(name)
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    if request.query_params.get("v") != tag:
        headers["Cache-Control"] = "no-cache"
    kind = _KINDS[name.rsplit(".", 1)[1]]
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(packed, media_type=kind, headers={**headers, "Content-Encoding": "gzip"})
    return Response(gzip.decompress(packed), media_type=kind, headers=headers)
