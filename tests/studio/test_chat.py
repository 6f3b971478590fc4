"""Conversations: through the Studio's own routes, in OpenAI's form, and while they are written."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from saywhere.core import Box, BoxSet, Mask, Point, Polygon, Region, Trace, WholeImage
from saywhere.core.errors import InvalidValue
from saywhere.formats._masks import RunLengths
from saywhere.studio.conversations import UserTurn
from saywhere.studio.looks import LookService
from saywhere.studio.settings import Limits
from saywhere.studio.shown_regions import MOST_SIDE, shown
from tests.studio.conftest import (
    BOX,
    AnsweringSeer,
    FakeConversation,
    FakeSeer,
    FakeStream,
    Gate,
    TalkingSeer,
    picture,
    png,
    refusal,
    upload,
)

POINT = {"kind": "point", "x": 0.5, "y": 0.5}
TRACE = {"kind": "trace", "points": [[0.1, 0.1, 0.0], [0.2, 0.3, 0.5]], "starts": [0]}


@pytest.fixture(params=[FakeStream, FakeConversation])
def talker(request: pytest.FixtureRequest) -> TalkingSeer:
    seer = TalkingSeer()
    seer.kind = request.param
    return seer


@pytest.fixture
def talking(open_studio: Callable[..., TestClient], talker: TalkingSeer) -> TestClient:
    return open_studio(model=talker)


def say(client: TestClient, photo: str, *turns: tuple[str, dict[str, Any] | None], **more: Any) -> Any:
    said = [{"text": text, "region": region} for text, region in turns]
    return client.post(f"/api/photos/{photo}/chat", json={"turns": said, **more})


def test_a_conversation_remembers_what_was_said_and_pointed_at(talking: TestClient, talker: TalkingSeer) -> None:
    photo = upload(talking, png())["id"]
    first = ("what is this?", BOX)
    assert say(talking, photo, first).json() == {
        "text": "Turn 1: what is this? Pointed at: box.",
        "regions": [],
        "forgotten": 0,
        "lost": [],
        "retold": 0,
    }
    assert (
        say(talking, photo, first, ("and that?", TRACE)).json()["text"] == "Turn 2: and that? Pointed at: box, trace."
    )
    third = say(talking, photo, first, ("and that?", TRACE), ("why so oddly?", None)).json()
    assert third["text"] == "Turn 3: why so oddly? Pointed at: box, trace."
    assert (third["forgotten"], third["lost"], third["retold"]) == (2, ["box 2: no two corners"], 0)
    assert talker.talks == 1


def test_a_conversation_that_is_not_kept_is_held_again(open_studio: Callable[..., TestClient]) -> None:
    seer = TalkingSeer()
    client = open_studio(Limits(conversations=1), model=seer)
    photo = upload(client, png())["id"]
    first = ("what is this?", POINT)
    say(client, photo, first)
    say(client, photo, ("something else", None))  # which takes the only place
    second = say(client, photo, first, ("and now?", None)).json()
    assert second["text"] == "Turn 2: and now? Pointed at: point."
    assert second["retold"] == 1
    # The same question twice begins at the same place.
    assert say(client, photo, first, ("and now?", None)).json()["text"] == second["text"]


def test_a_deleted_photo_takes_its_conversations_with_it(talking: TestClient, talker: TalkingSeer) -> None:
    photo = upload(talking, png())["id"]
    say(talking, photo, ("hello", None))
    talking.delete(f"/api/photos/{photo}")
    assert upload(talking, png())["id"] == photo
    assert say(talking, photo, ("hello", None), ("again", None)).json()["retold"] == 1


def test_what_the_model_points_out_can_be_drawn(talking: TestClient) -> None:
    photo = upload(talking, png())["id"]
    box, trace = say(talking, photo, ("where is it?", None)).json()["regions"]
    assert box == {"kind": "box", "xyxy": [0.2, 0.3, 0.5, 0.8]}
    assert trace["points"][1] == [0.8, 0.5, 0.5]
    [mask] = say(talking, photo, ("cut it out", POINT)).json()["regions"]
    assert mask["size"] == [60, 80]
    assert talking.post(f"/api/photos/{photo}/segment", json={"region": POINT}).json() == {"mask": mask}


def events(reply: Any) -> list[tuple[str, Any]]:
    """The events of a stream: their names and data."""
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"].startswith("text/event-stream")
    parts = [part.split("\n") for part in reply.text.strip().split("\n\n")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in parts]


def test_an_answer_can_be_streamed(talking: TestClient, talker: TalkingSeer) -> None:
    photo = upload(talking, png())["id"]
    *words, (name, whole) = events(say(talking, photo, ("where is it?", None), stream=True))
    assert {kind for kind, _ in words} == {"words"}
    assert "".join(data["text"] for _, data in words) == whole["text"]
    assert (len(words) > 3) == (talker.kind is FakeStream)
    assert name == "end"
    assert len(whole["regions"]) == 2


@pytest.mark.parametrize(
    ("turns", "said"),
    [
        ([("  ", None)], "turn 1: has no word"),
        ([("hello", None), ("here?", {"kind": "point", "x": 3, "y": 3})], "turn 2, point (3, 3)"),
        ([("here?", {"kind": "trace", "points": [[3, 3, 0], [4, 4, 1]]})], "turn 1, trace"),
        ([("here?", {"kind": "trace", "points": [[0.1, 0.1, 2], [0.2, 0.2, 1]]})], "region 0, trace"),
        ([("here?", {"kind": "box", "xyxy": [0.5, 0.5, 0.1, 0.1]})], "region 0, box"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_bad_turns_are_refused_with_a_sentence(
    talking: TestClient, turns: list[tuple[str, Any]], said: str, stream: bool
) -> None:
    photo = upload(talking, png())["id"]
    assert said in refusal(say(talking, photo, *turns, stream=stream), 422)["message"]


def test_long_trajectories_and_single_points_are_taken(talking: TestClient) -> None:
    photo = upload(talking, png())["id"]
    long = {"kind": "trace", "points": [[0.5, i / 10_000, i / 100] for i in range(10_000)]}
    single = {"kind": "trace", "points": [[0.5, 0.5, 0.0]]}
    assert say(talking, photo, ("what?", long), ("and?", single)).json()["text"].endswith("Pointed at: trace, trace.")


def test_too_much_is_refused(open_studio: Callable[..., TestClient]) -> None:
    client = open_studio(Limits(turns=2, text_words=5), model=TalkingSeer())
    photo = upload(client, png())["id"]
    assert refusal(say(client, photo, *[("hello", None)] * 3), 413)["message"].startswith("turns: 3")
    assert refusal(say(client, photo, ("a " * 6, None)), 413)["message"].startswith("turn 1: 6 words")


def test_a_model_that_cannot_talk_says_so(open_studio: Callable[..., TestClient]) -> None:
    client = open_studio(model=AnsweringSeer())
    photo = upload(client, png())["id"]
    for stream in (False, True):
        error = refusal(say(client, photo, ("hello", None), stream=stream), 409)
        assert error["code"] == "no_skill"
        assert "cannot talk about a photo" in error["message"]
    assert refusal(client.post(f"/api/photos/{photo}/segment", json={"region": POINT}), 409)["code"] == "no_skill"


def test_an_error_in_the_middle_of_a_stream_ends_it_with_a_sentence(open_studio: Callable[..., TestClient]) -> None:
    seer = TalkingSeer()
    client = open_studio(model=seer)
    photo = upload(client, png())["id"]
    asked = 0

    def fail_at_the_fourth() -> None:
        nonlocal asked
        asked += 1
        if asked == 4:
            raise InvalidValue("writer", "gives NaN for a word's score")

    seer.before_answer = fail_at_the_fourth
    *words, (name, error) = events(say(client, photo, ("what is this?", None), stream=True))
    assert len(words) == 3
    assert name == "error"
    assert error["message"] == "writer: gives NaN for a word's score"
    asked = 0
    lines = complete(client, message("what is this?"), stream=True).text.strip().split("\n\n")
    assert json.loads(lines[-2].removeprefix("data: "))["error"]["code"] == "invalid_value"
    assert lines[-1] == "data: [DONE]"


def test_one_who_stops_listening_stops_the_model_and_leaves_no_half_conversation() -> None:
    seer, gate, calls = TalkingSeer(), Gate(), iter(range(100))
    seer.before_answer = lambda: gate() if next(calls) == 2 else None
    said = [UserTurn("what is this?")]

    async def leave() -> None:
        service = LookService("fake", lambda: seer, Limits())
        service.open()
        pieces = service.stream("photo", picture, said)
        assert await anext(pieces) == "Turn"
        assert await asyncio.to_thread(gate.reached.wait, 20)
        await pieces.aclose()
        gate.opened.set()
        after = await service.say("photo", picture, [*said, UserTurn("and now?")])
        assert (after.spoken.text, after.retold) == ("Turn 2: and now? Pointed at: nothing.", 1)
        service.close()

    asyncio.run(leave())


def test_a_tracevlm_talks_and_cuts_out_in_the_studio(open_studio: Callable[..., TestClient]) -> None:
    from saywhere.models.search import GenerationConfig
    from saywhere.models.tracevlm.face import TraceVlmModel
    from tests.models.tracevlm import small

    model = TraceVlmModel(small.awake(small.model("qwen2_5_vl")), "tiny")
    model.generation = GenerationConfig(max_words=8, min_words=8)
    client = open_studio(model=model)
    photo = upload(client, png())["id"]
    plain = say(client, photo, ("what is this?", TRACE)).json()
    assert plain["lost"][-1] == "the end: there was no room for more"
    *words, (name, streamed) = events(say(client, photo, ("what is this?", TRACE), stream=True))
    assert name == "end"
    assert streamed == plain
    assert "".join(data["text"] for _, data in words) == plain["text"]
    second = say(client, photo, ("what is this?", TRACE), ("and <traj>(1,2)</traj>?", None)).json()
    assert second["retold"] == 0
    reply = complete(client, message("what is this?", TRAJECTORY)).json()
    assert reply["choices"][0]["message"]["content"] == plain["text"]
    one_pixel = upload(client, png(1, 1))["id"]
    assert say(client, one_pixel, ("what is this?", POINT)).json()["forgotten"] == 0
    mask = client.post(f"/api/photos/{photo}/segment", json={"region": POINT}).json()["mask"]
    assert mask["size"] == [24, 32]
    assert sum(mask["counts"]) == 24 * 32


# In OpenAI's form


def message(text: str, *parts: dict[str, Any], image: bool = True) -> dict[str, Any]:
    url = "data:image/png;base64," + base64.b64encode(png()).decode()
    photo = [{"type": "image_url", "image_url": {"url": url}}] if image else []
    words = [{"type": "text", "text": text}] if text else []
    return {"role": "user", "content": [*photo, *parts, *words]}


def complete(client: TestClient, *messages: dict[str, Any], **more: Any) -> Any:
    return client.post("/v1/chat/completions", json={"messages": list(messages), **more})


def said_by_it(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


TRAJECTORY = {"type": "trajectory", "points": [[0.1, 0.1, 0.0], [0.2, 0.3, 0.5]]}


@pytest.mark.parametrize(
    ("part", "name"),
    [
        (TRAJECTORY, "trace"),
        ({"type": "box", "xyxy": [0.1, 0.1, 0.4, 0.4]}, "box"),
        ({"type": "point", "x": 0.5, "y": 0.5}, "point"),
        ({"type": "region", "region": BOX}, "box"),
    ],
)
def test_the_chat_route_takes_what_is_pointed_at(talking: TestClient, part: dict[str, Any], name: str) -> None:
    reply = complete(talking, message("what is this?", part)).json()
    assert reply["choices"][0]["message"]["content"] == f"Turn 1: what is this? Pointed at: {name}."
    assert reply["saywhere"]["skill"] == "chat"


def test_the_chat_route_goes_on_with_a_conversation(talking: TestClient, talker: TalkingSeer) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        message("what is this?", TRAJECTORY),
        said_by_it("Turn 1: what is this? Pointed at: trace."),
        message("where is it?", image=False),
    ]
    complete(talking, *messages[:2])
    reply = complete(talking, *messages).json()
    assert reply["choices"][0]["message"]["content"] == "Turn 2: where is it? Pointed at: trace."
    assert [region["kind"] for region in reply["saywhere"]["regions"]] == ["box", "trace"]
    assert (talker.talks, len(talker.looks)) == (1, 1)


def test_a_new_image_begins_a_new_conversation(talking: TestClient) -> None:
    reply = complete(talking, message("old", TRAJECTORY), said_by_it("…"), message("new")).json()
    assert reply["choices"][0]["message"]["content"] == "Turn 1: new Pointed at: nothing."


def test_the_chat_route_streams_as_openai_does(talking: TestClient, talker: TalkingSeer) -> None:
    reply = complete(talking, message("where is it?", TRAJECTORY), stream=True)
    *lines, last = reply.text.strip().split("\n\n")
    assert last == "data: [DONE]"
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines]
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks}) == 1
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert "".join(delta.get("content", "") for delta in deltas) == "Turn 1: where is it? Pointed at: trace."
    assert (len(chunks) > 5) == (talker.kind is FakeStream)
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[-2:]] == [None, "stop"]
    assert len(chunks[-1]["saywhere"]["regions"]) == 2


def test_a_model_without_talk_answers_or_describes_and_says_which(open_studio: Callable[..., TestClient]) -> None:
    answers = open_studio(model=AnsweringSeer())
    asked = [
        message("why not?"),
        said_by_it("…"),
        message("is it red?", {"type": "point", "x": 0.5, "y": 0.5}, image=False),
    ]
    reply = complete(answers, *asked).json()
    assert reply["choices"][0]["message"]["content"] == "here"
    assert (reply["saywhere"]["skill"], reply["saywhere"]["probability"]) == ("answer", 0.7)
    assert "Earlier turns were not read" in reply["saywhere"]["note"]
    cannot = complete(answers, message("why not?")).json()["choices"][0]["message"]["content"]
    assert cannot == "I cannot know that: it asks for a reason"
    assert complete(answers, message("what is it?"), skill="caption").json()["saywhere"]["skill"] == "caption"
    assert complete(answers, message("")).json()["saywhere"]["skill"] == "caption"
    assert refusal(complete(answers, message("hello"), skill="chat"), 409)["code"] == "no_skill"
    describes = open_studio(model=FakeSeer())
    assert complete(describes, message("what is it?")).json()["saywhere"]["skill"] == "caption"


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"type": "trajectory", "points": []}, "points"),
        ({"type": "trajectory", "points": [[0.1, 0.2]]}, "points"),
        ({"type": "trajectory", "points": [[0.1, 0.2, "x"]]}, "points"),
        ({"type": "trajectory", "points": [[0.1, 0.2, 1], [0.1, 0.2, 0]]}, "trace"),
        ({"type": "trajectory", "points": [[5, 5, 0]]}, "turn 1"),
        ({"type": "trajectory", "points": [[0.1, 0.2, 0]], "starts": [1]}, "region 0"),
        ({"type": "box", "xyxy": [0.4, 0.4, 0.1, 0.1]}, "box"),
        ({"type": "point", "x": 99, "y": 0}, "x"),
        ({"type": "squiggle"}, "type"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_malformed_pointing_is_refused_with_a_sentence(
    talking: TestClient, part: dict[str, Any], said: str, stream: bool
) -> None:
    assert said in refusal(complete(talking, message("what?", part), stream=stream), 422)["message"]


def test_odd_conversations_are_refused_with_a_sentence(talking: TestClient) -> None:
    last = refusal(complete(talking, message("what?"), said_by_it("this")), 422)
    assert last["message"] == "messages: end with one of the assistant"
    two = refusal(complete(talking, message("what?", TRAJECTORY, TRAJECTORY)), 422)
    assert two["message"] == "turn 1: points at 2 places"
    assert refusal(complete(talking, message("a " * 500)), 413)["code"] == "too_large"
    silent = complete(talking, message("", TRAJECTORY), said_by_it("…"), message("and?", image=False))
    assert refusal(silent, 422)["message"] == "turn 1: has no word"


def test_the_chat_route_waits_for_the_model_before_it_chooses(open_studio: Callable[..., TestClient]) -> None:
    client = open_studio(model=TalkingSeer())
    looks = client.app.state.studio.looks  # type: ignore[attr-defined]
    gate, seer = Gate(), TalkingSeer()

    def load() -> TalkingSeer:
        gate()
        return seer

    looks._load = load
    looks.open()
    assert gate.reached.wait(20)
    threading.Timer(0.1, gate.opened.set).start()
    assert complete(client, message("hello")).json()["saywhere"]["skill"] == "chat"


# Regions as replies carry them


@pytest.mark.parametrize(
    "region",
    [
        WholeImage(),
        Point(0.1, 0.2),
        Box(0.1, 0.2, 0.3, 0.4),
        BoxSet((Box(0.1, 0.2, 0.3, 0.4), Box(0.5, 0.5, 1, 1))),
        Polygon([(0, 0), (1, 0), (0, 1)]),
        Trace([(0, 0, 0), (1, 1, 1), (0, 1, 2)], [0, 2]),
    ],
)
def test_a_region_that_is_shown_can_be_pointed_at_again(
    talking: TestClient, talker: TalkingSeer, region: Region
) -> None:
    from pydantic import TypeAdapter

    from saywhere.studio.messages import AnyRegion

    back = TypeAdapter(AnyRegion).validate_python(shown(region).model_dump()).region()
    assert back.to_json() == region.to_json()


@pytest.mark.parametrize("size", [(1, 1), (3, 4), (60, 80), (MOST_SIDE, 5), (3 * MOST_SIDE, MOST_SIDE)])
def test_masks_are_run_lengths_as_coco_has_them(size: tuple[int, int]) -> None:
    values = np.random.default_rng(0).random(size) > 0.5
    values[0, 0] = True
    mask = shown(Mask(values))
    step = -(-max(size) // MOST_SIDE)
    found = RunLengths((mask.size[0], mask.size[1]), tuple(mask.counts)).mask()
    np.testing.assert_array_equal(found, values[::step, ::step])
