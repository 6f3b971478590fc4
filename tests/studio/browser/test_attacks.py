"""Nothing that anybody types, names or says ever runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.videos import write_video

from ..conftest import encoded, picture
from .handling import LOOP, add_photo, expect, fetched, go, press, record, sent
from .payloads import PAYLOADS
from .running import WATCH, Talker, serving


def nothing_ran(page: Any) -> None:
    seen = page.evaluate("({pwned: seen.pwned, blocked: seen.blocked})")
    assert seen == {"pwned": [], "blocked": []}  # Not even tried: the policy had nothing to stop.
    foreign = (
        "iframe, object, embed, marquee, math, base, meta[http-equiv], link:not([href^=page]), style, form[action]"
    )
    assert page.evaluate(f"document.querySelectorAll('{foreign}, script:not([src^=page]), [src=x]').length") == 0


def test_no_name_of_a_file_ever_runs(page: Any):
    assert len(PAYLOADS) >= 40
    photos = [
        {"name": name.replace("/", "∕"), "mimeType": "image/png", "buffer": encoded(picture(8 + i, 8))}
        for i, name in enumerate(PAYLOADS)
    ]
    page.set_input_files("input[type=file]", photos)
    expect(page.locator(".thumb")).to_have_count(len(PAYLOADS))
    broken = [{**photo, "buffer": b"broken"} for photo in photos]
    page.set_input_files("input[type=file]", broken)
    expect(page.locator(".toast.problem")).to_have_count(len(PAYLOADS))
    nothing_ran(page)


def test_nothing_that_is_typed_or_said_by_the_model_ever_runs(page: Any, seer: Talker):
    add_photo(page)
    everything = " ".join(PAYLOADS).replace("\u0000", "")
    record(page, LOOP, sound=False)
    page.fill("#typed", everything)
    press(page, "Stop")
    page.fill("#annotator", PAYLOADS[3])
    press(page, "Save")
    expect(page.locator(".word")).to_have_count(len(everything.split()))
    go(page, "find")
    page.fill("#sentence", everything)
    press(page, "Show me")
    expect(page.locator(".word:visible")).to_have_count(len(everything.split()))
    go(page, "describe")
    seer.says = list(PAYLOADS)
    for _ in PAYLOADS:
        page.keyboard.press("w")
    expect(page.locator(".caption")).to_have_count(len(PAYLOADS))
    for payload in PAYLOADS[:2]:
        page.goto(page.url.split("#")[0] + "#" + payload)
        page.reload()
        page.wait_for_selector("html[data-started]")
    nothing_ran(page)


def test_nothing_in_a_kept_narrative_ever_runs(page: Any, address: str):
    add_photo(page)
    [photo] = fetched(address + "api/photos")["photos"]
    for i, payload in enumerate(payload.replace("\u0000", "") for payload in PAYLOADS):
        words = [{"text": word, "start_s": i, "end_s": i + 1} for i, word in enumerate(payload.split())]
        told = {
            "photo": photo["id"],
            "text": payload,
            "annotator": payload,
            "words": words,
            "origin": "human" if i % 2 else payload,
        }
        sent(address + "api/narratives", told)
    go(page, "replay")
    expect(page.locator(".narratives li")).to_have_count(len(PAYLOADS))
    for i in range(0, len(PAYLOADS), 6):
        page.locator(".pick").nth(i).click()
        expect(page.locator(".narratives li").nth(i)).to_have_class("chosen")
    nothing_ran(page)


def test_nothing_in_a_conversation_ever_runs(open_page: Callable[..., Any], seer: Talker):
    seer.skills = ("chat",)  # type: ignore[assignment]
    page = open_page()
    add_photo(page)
    go(page, "ask")
    everything = " ".join(PAYLOADS).replace("\u0000", "")
    parts = [everything[i : i + 500] for i in range(0, len(everything), 500)]
    for i, part in enumerate(parts, 1):
        page.fill("#question", part)
        page.keyboard.press("Enter")
        expect(page.locator(".turn .caption")).to_have_count(i)
        expect(page.get_by_role("button", name="Ask", exact=True)).to_be_enabled()
    expect(page.locator(".turn .caption").first).to_contain_text("<script>alert(1)</script>")
    nothing_ran(page)


def test_nothing_that_was_told_of_a_video_ever_runs(browser: Any, tmp_path: Path, seer: Talker):
    path = write_video(tmp_path / "videos", frames=(0,), voice=False)
    record = json.loads(path.read_text(encoding="utf-8"))
    actor = record["actor_narratives"][1]
    told = [{**actor, "actor_name": payload, "caption": payload} for payload in PAYLOADS]
    names = [*record["keyframe_names"], *PAYLOADS[:5]]
    path.write_text(json.dumps({**record, "actor_narratives": told, "keyframe_names": names}), encoding="utf-8")
    with serving(tmp_path / "studio", seer, videos=path) as address:
        context = browser.new_context()
        context.add_init_script(WATCH)
        page = context.new_page()
        page.goto(f"{address}#video")
        expect(page.locator(".pick[data-focus]")).to_have_count(len(PAYLOADS))
        for i in range(0, len(PAYLOADS), 6):
            page.locator(".pick[data-focus]").nth(i).click()
            expect(page.locator(".narratives li:has(.pick[data-focus])").nth(i)).to_have_class("chosen")
        nothing_ran(page)
        context.close()
