"""The review sheet in a real browser: what a person decides there is what the builder reads."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from saywhere.build.riln.example import RilnExample, content_digest, read_riln
from saywhere.build.riln.pipeline import build_riln
from saywhere.build.riln.review import read_review, write_review_sheet
from saywhere.build.riln.templates import TemplateGenerator
from tests.build.riln.told import told
from tests.studio.browser.running import browser_path


def test_accepting_rejecting_and_editing_export_what_was_decided(tmp_path: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    path = browser_path()
    build_riln([told()], tmp_path / "set", TemplateGenerator())
    shown = [one for one in read_riln(tmp_path / "set") if isinstance(one, RilnExample)][:4]
    write_review_sheet(shown, tmp_path / "review.html")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.goto((tmp_path / "review.html").as_uri())
        articles = page.locator("article")
        articles.nth(0).get_by_role("button", name="Accept").click()
        articles.nth(1).get_by_role("button", name="Reject").click()
        articles.nth(2).locator("textarea").nth(1).fill("Something else.")
        assert page.locator("#progress").inner_text() == "3 of 4 decided"
        with page.expect_download() as download:
            page.locator("#export").click()
        download.value.save_as(tmp_path / "decisions.json")
        page.reload()
        assert page.locator("#progress").inner_text() == "3 of 4 decided"
        other = msgspec.structs.replace(shown[0], turns=shown[1].turns)
        write_review_sheet([other, *shown[1:]], tmp_path / "review.html")
        page.reload()
        assert page.locator("#progress").inner_text() == "2 of 4 decided"
        browser.close()
    assert wrong == []
    decisions = read_review(tmp_path / "decisions.json")
    assert [(one.id, one.decision) for one in decisions.values()] == [
        (shown[0].id, "accept"),
        (shown[1].id, "reject"),
        (shown[2].id, "edit"),
    ]
    assert decisions[shown[2].id].texts == (shown[2].turns[0].text, "Something else.")
    assert [one.digest for one in decisions.values()] == [content_digest(one) for one in shown[:3]]
