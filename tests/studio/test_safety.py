"""Who may come in, with how much, and what browsers are told."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from saywhere.core.errors import InvalidValue
from saywhere.studio.safety import HEADERS, Uploads
from saywhere.studio.settings import Limits, StudioSettings
from tests.studio.conftest import Gate, encoded, narrative, picture, png, refusal, upload, wav

TOKEN = "correct-horse-battery"


# Host and Origin


@pytest.mark.parametrize(
    ("host", "welcome"),
    [
        ("127.0.0.1:8765", True),
        ("127.0.0.1", True),
        ("LOCALHOST:9", True),
        ("[::1]:8765", True),
        ("evil.example", False),
        ("localhost.evil.example:8765", False),
        ("127.0.0.1.nip.io:8765", False),
        ("localhost.", False),
        ("localhost:8765@evil.example", False),
        ("192.168.1.5:8765", False),
        ("", False),
        ("[::1", False),
    ],
)
def test_the_server_answers_only_to_its_own_names(client: TestClient, host: str, welcome: bool) -> None:
    reply = client.get("/api/status", headers={"Host": host})
    if welcome:
        assert reply.status_code == 200
    else:
        assert refusal(reply, 403)["code"] == "foreign_host"


@pytest.mark.parametrize(
    ("bound", "host", "welcome"),
    [
        ("0.0.0.0", "192.168.1.5:8765", True),
        ("0.0.0.0", "[fe80::1]:8765", True),
        ("0.0.0.0", "evil.example", False),
        ("0.0.0.0", "my-desk.local:8765", True),
        ("192.168.1.5", "192.168.1.5:8765", True),
        ("192.168.1.5", "192.168.1.6:8765", False),
    ],
)
def test_an_open_server_answers_to_numbers_and_to_the_names_it_was_given(
    open_studio: Callable[..., TestClient], bound: str, host: str, welcome: bool
) -> None:
    client = open_studio(host=bound, token=TOKEN, hosts=("my-desk.local",))
    reply = client.get("/api/status", headers={"Host": host, "Authorization": f"Bearer {TOKEN}"})
    assert reply.status_code == (200 if welcome else 403)


@pytest.mark.parametrize(
    ("headers", "welcome"),
    [
        ({}, True),
        ({"Origin": "http://127.0.0.1:8765"}, True),
        ({"Origin": "https://127.0.0.1:8765"}, True),
        ({"Origin": "http://127.0.0.1:9999"}, False),
        ({"Origin": "http://localhost:8765"}, False),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": ""}, False),
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, False),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
def test_other_sites_get_nothing_whatever_they_ask(
    client: TestClient, method: str, headers: dict[str, str], welcome: bool
) -> None:
    reply = client.request(method, "/api/photos", headers=headers)
    if welcome:
        assert reply.status_code != 403
    else:
        assert refusal(reply, 403)["code"] == "foreign_origin"
    assert "access-control-allow-origin" not in reply.headers


def test_a_link_on_another_site_may_lead_to_the_page(client: TestClient) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.get("/", headers=headers).status_code == 200
    assert client.get("/page/main.js", headers=headers).status_code == 403


# Token


def test_without_the_token_nothing_is_given(open_studio: Callable[..., TestClient]) -> None:
    client = open_studio(token=TOKEN)
    for path in ("/", "/page/main.js", "/api/status", "/api/openapi.json", "/v1/models", "/nothing"):
        reply = client.get(path)
        assert refusal(reply, 401)["code"] == "no_token"
        assert reply.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (f"Bearer {TOKEN}", 200),
        (f"bearer {TOKEN}", 200),
        (f"Bearer {TOKEN}x", 401),
        (f"Bearer {TOKEN[:-1]}", 401),
        (f"Basic {TOKEN}", 401),
        (TOKEN, 401),
        ("Bearer", 401),
        ("Bearer \xe9", 401),
    ],
)
def test_programs_send_the_token(open_studio: Callable[..., TestClient], authorization: str, status: int) -> None:
    headers = {"Authorization": authorization.encode("latin-1")}
    assert open_studio(token=TOKEN).get("/api/status", headers=headers).status_code == status


def test_a_browser_turns_the_link_into_a_cookie_that_is_not_the_token(
    open_studio: Callable[..., TestClient],
) -> None:
    client = open_studio(token=TOKEN)
    entry = client.get("/", params={"token": TOKEN, "photo": "x y"}, follow_redirects=False)
    assert (entry.status_code, entry.headers["location"]) == (303, "/?photo=x%20y")
    cookie = entry.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert TOKEN not in cookie
    assert client.get("/api/status").status_code == 200
    client.cookies.clear()
    assert client.get("/api/status").status_code == 401
    client.cookies.set("saywhere-studio-8765", TOKEN)
    assert client.get("/api/status").status_code == 401


@pytest.mark.parametrize("query", ["token=wrong", f"token={TOKEN}&token=x", "token=%ff", "token="])
def test_a_wrong_link_opens_nothing(open_studio: Callable[..., TestClient], query: str) -> None:
    client = open_studio(token=TOKEN)
    assert refusal(client.get(f"/?{query}"), 401)
    assert "set-cookie" not in client.get(f"/?{query}").headers


def test_the_link_is_for_the_page_alone(open_studio: Callable[..., TestClient]) -> None:
    assert refusal(open_studio(token=TOKEN).get("/api/status", params={"token": TOKEN}), 401)


@pytest.mark.parametrize("cookie", ["a=b; saywhere-studio-8765=", "\x00=;;;", "saywhere-studio-8765=é", '="'])
def test_strange_cookies_are_no_key(open_studio: Callable[..., TestClient], cookie: str) -> None:
    headers = {"Cookie": cookie.encode("latin-1")}
    assert refusal(open_studio(token=TOKEN).get("/api/status", headers=headers), 401)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"host": "0.0.0.0"}, "token is needed"),
        ({"host": "192.168.1.5"}, "token is needed"),
        ({"host": "my-desk.local"}, "token is needed"),
        ({"token": "short"}, "at least 16"),
        ({"token": "long enough but with spaces"}, "space"),
        ({"token": "éééééééééééééééééé"}, "plain"),
        ({"port": 70_000}, "65535"),
    ],
)
def test_settings_that_are_not_safe_are_refused(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        StudioSettings(tmp_path, **change)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.8.8.8"])
def test_this_computer_alone_needs_no_token(tmp_path: Path, host: str) -> None:
    assert StudioSettings(tmp_path, host=host).token == ""


# Headers


@pytest.mark.parametrize("path", ["/", "/page/main.js", "/page/style.css", "/api/status", "/nothing", "/api/photos/x"])
def test_every_reply_tells_browsers_to_be_strict(client: TestClient, path: str) -> None:
    reply = client.get(path)
    assert {name: reply.headers[name] for name in HEADERS} == HEADERS
    assert "server" not in reply.headers
    assert reply.headers["cache-control"] == ("no-store" if path.startswith("/api") else "no-cache")


def test_the_policy_lets_no_foreign_and_no_inline_script_run(client: TestClient) -> None:
    policy = dict(part.strip().split(" ", 1) for part in client.get("/").headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == policy["style-src"] == "'self'"
    assert not re.search(r"unsafe|https?:|\*", " ".join(policy.values()))


def test_the_page_has_no_inline_script_or_style(client: TestClient) -> None:
    page = client.get("/").text
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=|javascript:|https?://(?!www\.w3\.org)", page)


def test_refusals_carry_the_headers_too(client: TestClient) -> None:
    reply = client.get("/", headers={"Host": "evil.example"})
    assert reply.headers["content-security-policy"] == HEADERS["Content-Security-Policy"]


# Size


def _endless(size: int, sent: list[int]) -> Iterator[bytes]:
    """A body without a length, in pieces of 1000 bytes."""
    for _ in range(size // 1_000):
        sent.append(1_000)
        yield bytes(1_000)


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("POST", "/api/photos", "image/png"),
        ("POST", "/api/narratives", "application/json"),
        ("PUT", "/api/narratives/0123456789abcdef", "application/json"),
        ("POST", "/api/looks", "application/json"),
        ("POST", "/v1/chat/completions", "application/json"),
    ],
)
def test_a_body_that_is_too_long_is_413_with_or_without_its_length(
    open_studio: Callable[..., TestClient], method: str, path: str, kind: str
) -> None:
    small = Limits(photo_bytes=5_000, narrative_bytes=5_000, json_bytes=5_000, chat_bytes=5_000)
    client = open_studio(small)
    assert refusal(client.request(method, path, content=bytes(5_001), headers={"Content-Type": kind}), 413)
    streamed = client.request(method, path, content=_endless(20_000, []), headers={"Content-Type": kind})
    assert refusal(streamed, 413)["code"] == "too_large"


def test_audio_that_is_too_long_is_413(open_studio: Callable[..., TestClient]) -> None:
    client = open_studio(Limits(audio_bytes=2_000))
    made = client.post("/api/narratives", json=narrative(upload(client, png())["id"])).json()
    address = f"/api/narratives/{made['id']}/audio"
    assert refusal(client.put(address, content=_endless(9_000, []), headers={"Content-Type": "audio/wav"}), 413)
    assert client.put(address, content=wav(0.05), headers={"Content-Type": "audio/wav"}).status_code == 200


@pytest.mark.anyio
@pytest.mark.parametrize("length", [b"9" * 30, b"25000001"])
async def test_a_length_that_is_too_long_is_refused_before_anything_is_read(client: TestClient, length: bytes) -> None:
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"image/png"), (b"content-length", length)]
    scope = {"type": "http", "method": "POST", "path": "/api/photos", "query_string": b"", "headers": headers}
    replies: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        pytest.fail("the body was asked for")

    async def send(message: dict[str, Any]) -> None:
        replies.append(message)

    await client.app(scope, receive, send)
    assert replies[0]["status"] == 413


@pytest.mark.anyio
async def test_few_large_bodies_are_held_at_a_time(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path, Limits(uploads=1, large_bytes=100))

    def coming() -> Any:
        parts = iter([{"type": "http.request", "body": bytes(60), "more_body": more} for more in (True, False)])

        async def receive() -> dict[str, Any]:
            return next(parts)

        return receive

    async with uploads.whole(coming(), 1_000) as first:
        assert len((await first())["body"]) == 120
        assert (uploads.free, uploads.spooled) == (0, 120)
        with pytest.raises(Exception, match="too many large files"):
            async with uploads.whole(coming(), 1_000):
                pass
    assert (uploads.free, uploads.spooled) == (1, 0)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def test_uploads_wait_in_a_bounded_line(
    open_studio: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from saywhere.studio import photos

    gate, clean = Gate(), photos.clean_photo
    client = open_studio(Limits(photo_queue=1))
    monkeypatch.setattr(photos, "clean_photo", lambda *given: (gate(), clean(*given))[1])
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(upload, client, png())
        assert gate.reached.wait(20)
        full = client.post("/api/photos", content=png(9, 9), headers={"Content-Type": "image/png"})
        gate.opened.set()
        assert first.result()["width"] == 32
    assert refusal(full, 429)["code"] == "busy"


# Text of others


@pytest.mark.parametrize(
    "name",
    ["<script>alert(1)</script>.png", '"><img src=x onerror=alert(1)>', "%0d%0aSet-Cookie:%20a=b", "\u202egnp.exe"],
)
def test_a_name_stays_text(client: TestClient, name: str) -> None:
    from urllib.parse import quote

    photo = upload(client, png(), quote(name))
    reply = client.get("/api/photos")
    assert reply.headers["content-type"] == "application/json"
    assert "\u202e" not in photo["name"]
    assert "set-cookie" not in client.get(photo["url"]).headers


def test_what_looks_like_a_page_is_never_served_as_one(client: TestClient) -> None:
    data = encoded(picture(), "PNG") + b"<html><script>alert(1)</script>"
    photo = upload(client, data)
    file = client.get(photo["url"])
    assert file.headers["content-type"] == "image/png"
    assert b"<script>" not in file.content


def test_errors_are_utf8_whatever_was_sent(client: TestClient) -> None:
    body = json.dumps({"photos": ["0" * 32], "\ud800": 1})
    reply = client.post("/api/looks", content=body, headers={"Content-Type": "application/json"})
    assert refusal(reply, 422)
