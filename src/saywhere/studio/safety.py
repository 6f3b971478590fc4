"""Who may come in, with how much, and what browsers may do with what they get.

A page of another site may make the browser of the one who runs the Studio send requests here: with a foreign Origin
(cross-site requests) or under a foreign Host (names that were bound anew to this computer). Both are refused, before
anything is read. Bodies are counted while they come, whatever Content-Length said.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO
from urllib.parse import parse_qs, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from saywhere.atomic import FULL
from saywhere.studio.errors import Refused, busy, reply_to, too_large
from saywhere.studio.settings import Limits, StudioSettings, is_address, is_everywhere

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob: data:",
        "media-src 'self' blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "worker-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "object-src 'none'",
    ]
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=(), display-capture=()",
}
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_HOST = re.compile(r"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::\d{1,5})?")
_OWN_SITES = frozenset({"", "same-origin", "none"})
_YEAR_S = 31_536_000
_PART = 1 << 20


class Doorkeeper:
    """The outermost layer of the server: checks Host, Origin, token and size, and adds headers to what goes out."""

    def __init__(self, app: ASGIApp, settings: StudioSettings) -> None:
        self.app, self.settings = app, settings
        self._uploads = Uploads(settings.folder, settings.limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            # The Studio speaks no WebSocket; closing before accepting is answered with 403.
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = Headers(scope=scope)
        guarded = _with_headers(send, scope["path"])
        try:
            check_host(headers, self.settings)
            check_origin(headers, scope["path"], scope["method"])
            entry = check_token(headers, scope, self.settings)
            most = most_bytes(scope["path"], self.settings.limits)
            check_length(headers, most)
        except Refused as refused:
            await reply_to(refused)(scope, receive, guarded)
            return
        if entry is not None:
            await entry(scope, receive, guarded)
            return
        try:
            async with self._uploads.whole(receive, most) as whole:
                await self.app(scope, whole, guarded)
        except Refused as refused:
            await reply_to(refused)(scope, receive, guarded)


def check_host(headers: Headers, settings: StudioSettings) -> None:
    """The name that the client called the server by must be one of its own."""
    called = headers.getlist("host")
    match = _HOST.fullmatch(called[0].lower()) if len(called) == 1 else None
    host = (match["six"] or match["name"]) if match else ""
    own = {*_LOOPBACK_NAMES, settings.host.lower(), *(name.lower() for name in settings.hosts)}
    # A number cannot be bound to another address, so with all addresses open any number will do.
    if host not in own and not (is_everywhere(settings.host) and is_address(host)):
        hint = "open it under the address that it printed when it started"
        raise Refused(403, "foreign_host", "the Studio is not called that", hint)


def check_origin(headers: Headers, path: str, method: str) -> None:
    """What a browser says on whose behalf it asks must be this server; programs say nothing."""
    origins = headers.getlist("origin")
    host = headers.get("host", "").lower()
    if origins and (len(origins) > 1 or origins[0].lower() not in (f"http://{host}", f"https://{host}")):
        raise Refused(403, "foreign_origin", "the Studio takes no requests from other sites")
    follows_link = method == "GET" and headers.get("sec-fetch-mode") == "navigate" and path == "/"
    if headers.get("sec-fetch-site", "") not in _OWN_SITES and not follows_link:
        raise Refused(403, "foreign_origin", "the Studio takes no requests from other sites")


def check_token(headers: Headers, scope: Scope, settings: StudioSettings) -> Response | None:
    """Nothing if the client may come in; a redirect that gives it a cookie if it came with ?token= to the page.

    The link is good for its first use in a browser: then the cookie counts, and the token leaves the address bar.
    """
    if not settings.token:
        return None
    if scope["path"] == "/" and scope["method"] == "GET" and (given := _query(scope).get("token")):
        if len(given) == 1 and _same(given[0], settings.token):
            return _entry(scope, settings)
    elif _same(_bearer(headers), settings.token) or _same(_cookie(headers, settings), _pass(settings)):
        return None
    hint = "open the link with ?token= that the Studio printed, or send Authorization: Bearer TOKEN"
    raise Refused(401, "no_token", "the Studio asks for its token", hint, {"WWW-Authenticate": "Bearer"})


def _entry(scope: Scope, settings: StudioSettings) -> Response:
    kept = {name: values for name, values in _query(scope).items() if name != "token"}
    reply = RedirectResponse("/" + ("?" + urlencode(kept, doseq=True, quote_via=quote) if kept else ""), 303)
    reply.set_cookie(_cookie_name(settings), _pass(settings), _YEAR_S, httponly=True, samesite="lax")
    return reply


def _query(scope: Scope) -> dict[str, list[str]]:
    return parse_qs(scope["query_string"].decode("latin-1"))


def _bearer(headers: Headers) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _cookie(headers: Headers, settings: StudioSettings) -> str:
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(_cookie_name(settings))
    except CookieError:
        return ""
    return morsel.value if morsel else ""


def _cookie_name(settings: StudioSettings) -> str:
    """Browsers share cookies among the ports of one host: each Studio has its own."""
    return f"saywhere-studio-{settings.port}"


def _pass(settings: StudioSettings) -> str:
    """What the cookie holds: made from the token, which itself is not left in the browser."""
    return hmac.new(settings.token.encode(), b"saywhere studio cookie", hashlib.sha256).hexdigest()


def _same(given: str, wanted: str) -> bool:
    """Compared in a time that does not tell how much was right."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


def most_bytes(path: str, limits: Limits) -> int:
    """How long a request's body may be."""
    if path == "/api/photos" or (path.startswith("/api/footage/") and path.endswith("/frames")):
        return limits.photo_bytes
    if path == "/v1/chat/completions":
        return limits.chat_bytes
    if path == "/api/imports":
        return limits.import_bytes
    if path == "/api/transcriptions":
        return limits.audio_bytes
    if path.startswith(("/api/narratives", "/api/video-narratives")):
        return limits.audio_bytes if path.endswith("/audio") else limits.narrative_bytes
    return limits.json_bytes


def check_length(headers: Headers, most: int) -> None:
    """Refuse a body that says by itself that it is too long, before it comes."""
    said = headers.get("content-length", "0")
    # int() has a limit of its own on digits.
    length = int(said) if said.isdecimal() and len(said) < 19 else most + 1
    if length > most:
        raise too_large("the request", length, most, " bytes")


class Uploads:
    """Bodies on their way in: counted as they come, kept on the disk until they are whole, then in memory a few at a
    time. Used by the event loop's thread alone.

    folder: on whose disk they lie, as files without a name: nothing is left of a server that was killed.
    """

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder, self.limits = folder, limits
        self.free, self.spooled = limits.uploads, 0

    @asynccontextmanager
    async def whole(self, receive: Receive, most: int) -> AsyncIterator[Receive]:
        """A `receive` that gives the whole body: 413 above `most` bytes, 429 if there is no room for it now."""
        first = await receive()
        if not first.get("more_body"):
            if len(first.get("body", b"")) > most:
                raise too_large("the request", len(first["body"]), most, " bytes")
            yield _replayed(receive, [first])
            return
        with self._file() as file:
            size, held = 0, False
            try:
                message = first
                while True:
                    part = message.get("body", b"")
                    size, self.spooled = size + len(part), self.spooled + len(part)
                    self._check(size, most)
                    file.write(part)
                    if not message.get("more_body"):
                        break
                    message = await receive()
                if message["type"] == "http.disconnect":
                    yield _replayed(receive, [message])
                    return
                if size > self.limits.large_bytes:
                    if not self.free:
                        raise busy("too many large files come at a time")
                    self.free, held = self.free - 1, True
                file.seek(0)
                yield _replayed(receive, _parts(file, size))
            finally:
                self.spooled -= size
                self.free += held

    def _check(self, size: int, most: int) -> None:
        if size > most:
            raise too_large("the request", size, most, " bytes")
        if size > self.limits.large_bytes and self.spooled > self.limits.spool_bytes:
            raise busy("too many large files come at a time")

    @contextmanager
    def _file(self) -> Iterator[IO[bytes]]:
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with SpooledTemporaryFile(max_size=self.limits.large_bytes, dir=str(self.folder)) as file:
                yield file
        except OSError as error:
            if error.errno not in FULL:
                raise
            hint = "free some room on the disk of the Studio's folder"
            raise Refused(507, "disk_full", "the Studio's disk is full; nothing was kept", hint) from error


def _parts(file: IO[bytes], size: int) -> Iterator[Message]:
    while True:
        part = file.read(_PART)
        more = file.tell() < size
        yield {"type": "http.request", "body": part, "more_body": more}
        if not more:
            return


def _replayed(receive: Receive, messages: Iterable[Message]) -> Receive:
    """Gives the messages first, and then what comes."""
    kept = iter(messages)

    async def replaying() -> Message:
        message = next(kept, None)
        return await receive() if message is None else message

    return replaying


def _with_headers(send: Send, path: str) -> Send:
    """A `send` that adds what every reply carries."""
    kept = "no-store" if path.startswith(("/api", "/v1")) else "no-cache"

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault("Cache-Control", kept)
        await send(message)

    return guarded
