"""Answers, and why a word was said or an answer given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from saywhere.studio.settings import Limits
from tests.studio.conftest import BOX, GRID, WHOLE, AnsweringSeer, FakeSeer, ScenicSeer, png, refusal, upload

NOBODY = "0" * 32


@pytest.fixture
def seer() -> FakeSeer:
    return AnsweringSeer()


def ask(client: TestClient, photo: dict[str, Any], what: str, **asked: Any) -> Any:
    return client.post(f"/api/photos/{photo['id']}/{what}", json=asked)


def test_a_word_s_map_lies_on_the_patches_of_its_region(client: TestClient, photo: dict[str, Any]) -> None:
    reason = ask(client, photo, "why", region=BOX, word=1, text="a red wall").json()
    weights = np.array(reason["weights"])
    assert (reason["said"], reason["method"]) == ("red", "gradient")
    assert weights.shape == GRID
    assert weights[0, 0] > 0
    assert not weights[-1].any()
    assert reason["faithfulness"] == pytest.approx(1)
    assert reason["from_names"] == pytest.approx(1 - np.exp(-1))
    assert reason["seconds"] >= 0


@pytest.mark.parametrize("method", ["gradient", "attention", "occlusion"])
def test_what_cannot_be_measured_is_null(client: TestClient, photo: dict[str, Any], method: str) -> None:
    reason = ask(client, photo, "why", region=WHOLE, word=0, text="a wall", method=method).json()
    assert reason["method"] == method
    # All patches of the whole photo weigh the same; occlusion is what the others are measured by.
    assert (reason["faithfulness"] is None) == (method != "gradient")


def test_without_a_text_the_model_s_own_caption_is_meant(
    client: TestClient, photo: dict[str, Any], seer: FakeSeer
) -> None:
    assert ask(client, photo, "why", region=WHOLE, word=1).json()["said"] == "patches"
    assert seer.batches == [1]
    assert ask(client, photo, "why", region=WHOLE, word=1, text="a wall").json()["said"] == "wall"
    assert seer.batches == [1]


def test_a_question_gets_an_answer_with_its_rivals(client: TestClient, photo: dict[str, Any]) -> None:
    told = ask(client, photo, "answer", question="is there a flurb?").json()
    assert told == {
        "answer": "yes",
        "probability": 0.7,
        "others": [{"text": "no", "probability": 0.25}, {"text": "2", "probability": 0.05}],
        "unknown": ["flurb"],
        "unread": [],
        "kinds": ["is there a …?"],
        "reason": "",
    }
    assert ask(client, photo, "answer", question="what is here?", region=BOX).json()["answer"] == "here"


def test_what_cannot_be_known_is_said_with_its_reason_and_the_guesses(
    client: TestClient, photo: dict[str, Any]
) -> None:
    told = ask(client, photo, "answer", question="why is this so?").json()
    assert (told["answer"], told["reason"]) == ("I cannot know that", "it asks for a reason")
    assert told["others"][0] == {"text": "yes", "probability": 0.7}


@pytest.mark.parametrize(
    ("asked", "said"), [({}, "yes"), ({"region": BOX}, "here"), ({"answer": "no"}, "no"), ({"answer": None}, "yes")]
)
def test_an_answer_s_map_lies_on_its_places(
    client: TestClient, photo: dict[str, Any], asked: dict[str, Any], said: str
) -> None:
    reason = ask(client, photo, "why-answer", question="is there a cup?", **asked).json()
    weights = np.array(reason["weights"])
    half = weights.shape[1] // 2
    assert reason["said"] == said
    assert weights[:, :half].min() == 1
    assert 0 < weights[:, half:].max() < 1
    assert reason["from_names"] is None


@pytest.mark.parametrize(
    ("what", "asked", "reason"),
    [
        ("why", {"region": WHOLE, "word": 2, "text": "a wall"}, "2 is none of the 2 words"),
        ("why", {"region": WHOLE, "word": -1}, "word is too small: at least 0"),
        ("why", {"region": {"kind": "point", "x": 2, "y": 2}, "word": 0}, "covers nothing"),
        ("why", {"region": WHOLE, "word": 0, "method": "guess"}, "method"),
        ("why", {"word": 0}, "region"),
        ("why", {"region": WHOLE, "word": 0, "words": 1}, "words is not known here"),
        ("answer", {"question": " "}, "has no word"),
        ("answer", {"question": ""}, "is empty"),
        ("answer", {"question": "x", "region": {"kind": "box", "xyxy": [1, 0, 0, 1]}}, "no area"),
        ("why-answer", {"question": "x", "method": "guess"}, "method"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_its_reason(
    client: TestClient, photo: dict[str, Any], what: str, asked: dict[str, Any], reason: str
) -> None:
    assert reason in refusal(ask(client, photo, what, **asked), 422)["message"]


def test_too_much_at_once_is_413(open_studio: Callable[..., TestClient]) -> None:
    client = open_studio(Limits(points=3, text_words=3))
    photo = upload(client, png())
    line = {"kind": "trace", "points": [[0.5, 0.5, 0]] * 4}
    assert refusal(ask(client, photo, "why", region=line, word=0, text="a"), 413)
    assert refusal(ask(client, photo, "why", region=WHOLE, word=0, text="a b c d"), 413)
    assert refusal(ask(client, photo, "answer", question="a b c d"), 413)
    assert refusal(ask(client, photo, "answer", question="a", region=line), 413)
    assert refusal(ask(client, photo, "why-answer", question="a b c d"), 413)


@pytest.mark.parametrize("what", ["why", "answer", "why-answer"])
def test_photos_that_are_not_there_are_404(client: TestClient, what: str) -> None:
    body = {"region": WHOLE, "word": 0} if what == "why" else {"question": "x"}
    assert refusal(client.post(f"/api/photos/{NOBODY}/{what}", json=body), 404)["code"] == "unknown_photo"


def test_a_model_that_answers_nothing_says_so(open_studio: Callable[..., TestClient]) -> None:
    client = open_studio(model=FakeSeer())
    photo = upload(client, png())
    for what in ("answer", "why-answer"):
        error = refusal(ask(client, photo, what, question="is there a cup?"), 409)
        assert error["code"] == "no_skill"
        assert "cannot answer questions" in error["message"]
    assert ask(client, photo, "why", region=WHOLE, word=0, text="a").status_code == 200


def test_a_word_of_a_caption_above_objects_is_explained_at_its_level(open_studio: Callable[..., TestClient]) -> None:
    client = open_studio(model=ScenicSeer())
    photo = upload(client, png())
    asked = {"region": WHOLE, "word": 0, "level": "action"}
    reply = client.post(f"/api/photos/{photo['id']}/why", json=asked)
    assert reply.json()["said"] == "action"
    refused = client.post(f"/api/photos/{photo['id']}/why", json=asked | {"level": "rationale"})
    assert refusal(refused, 404)["code"] == "unknown_level"
