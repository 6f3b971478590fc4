"""Stored files as replies, whole or in part."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fastapi.responses import FileResponse
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from saywhere.studio.errors import Refused, reply_to

_BINARY = {"schema": {"type": "string", "format": "binary"}}
_CONTENT = dict.fromkeys(("image/png", "image/jpeg", "image/webp"), _BINARY)
PICTURE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The photo.", "content": _CONTENT},
    206: {"description": "A part of it.", "content": _CONTENT},
}
"""For OpenAPI: replies that are a photo."""
_ONE_RANGE = re.compile(r"bytes=(?P<first>\d{1,15})?-(?P<last>\d{1,15})?")


class StoredFile(FileResponse):
    """A file, or the one part that Range asks for. A Range of another form is passed over, as HTTP allows."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wanted = Headers(scope=scope).get("range")
        if wanted is not None:
            size = Path(self.path).stat().st_size
            match = _ONE_RANGE.fullmatch(wanted.replace(" ", ""))
            if match is None or not (match["first"] or match["last"]) or _backwards(match):
                plain = [(name, value) for name, value in scope["headers"] if name.lower() != b"range"]
                scope = {**scope, "headers": plain}
            elif int(match["first"] or 0) >= size or (match["first"] is None and not int(match["last"])):
                said = Refused(
                    416, "no_such_range", f"the file has {size:,} bytes", "", {"Content-Range": f"bytes */{size}"}
                )
                await reply_to(said)(scope, receive, send)
                return
        await super().__call__(scope, receive, send)


def _backwards(match: re.Match[str]) -> bool:
    return bool(match["first"] and match["last"] and int(match["last"]) < int(match["first"]))
