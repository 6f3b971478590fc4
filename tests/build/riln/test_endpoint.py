"""Generation by models: roles, cost, what models get wrong, and runs that are killed and resumed."""

from __future__ import annotations

import json
import socket
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from saywhere.build.llm import Chat, Completion
from saywhere.build.riln import endpoint, replies
from saywhere.build.riln.drafts import Ledger
from saywhere.build.riln.endpoint import SILENT_IN_A_ROW, EndpointGenerator
from saywhere.build.riln.overlap import EvaluationText
from saywhere.build.riln.pipeline import RilnManifest, RilnMaterial, RilnSettings, build_riln
from saywhere.build.riln.replies import Listed, PhraseReplies, Unusable, read_reply
from saywhere.build.riln.report import price_of, report_text
from saywhere.build.riln.roles import ROLES, RoleSettings, read_roles
from saywhere.core import InvalidFile, InvalidValue
from tests.build.endpoint import Reply, served
from tests.build.riln.told import SAID, SPANS, answer_well, chats, generator, told

# Each says something else: of one and the same text the first answer would do for all.
FIVE = [
    told(str(i), caption=SAID.replace("red", colour)) for i, colour in enumerate(("red", "blue", "grey", "old", "tall"))
]
ROLE_OF_PROMPT = {f"{role}-model": role for role in ROLES}


def build(folder: Path, made_by: EndpointGenerator, narratives: Any = FIVE, workers: int = 1) -> RilnManifest:
    return build_riln(narratives, folder, made_by, RilnSettings(shard=2, workers=workers))


def outputs(folder: Path) -> dict[str, bytes]:
    """All but the cache, which names the endpoint's port."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "answers.jsonl"}


def failing(role: str, reply: Reply) -> Callable[[dict[str, Any], int], Reply]:
    """A model that answers well but in one role."""
    return lambda question, number: reply if question["model"] == f"{role}-model" else answer_well(question, number)


def test_each_role_asks_its_model_once_and_the_cost_is_counted(tmp_path: Path) -> None:
    with served(answer_well) as server:
        made = build(tmp_path, generator(server.url, tmp_path / "answers.jsonl"))
    found = made.statistics
    assert Counter(question["model"] for question in server.asked) == dict.fromkeys(ROLE_OF_PROMPT, 5)
    assert (sum(found.questions.values()), found.dialogues, found.rejections) == (60, 15, {})
    assert found.calls == dict.fromkeys(sorted(ROLES), 5)
    assert found.prompt_tokens == dict.fromkeys(sorted(ROLES), 500)
    roles = dict.fromkeys(ROLES, RoleSettings("http://x/v1", "m", prompt_price=2.0, answer_price=10.0))
    assert price_of(found, roles) == pytest.approx(4 * (500 * 2 + 50 * 10) / 1e6)
    assert "| answers | 5 | 500 | 50 | 0.0015 |" in report_text(made, EvaluationText(), roles)
    assert (
        made.generator == "phrases: phrases-model, questions: questions-model, answers: answers-model, dialogues: "
        "dialogues-model"
    )


def test_several_workers_make_the_same_bytes(tmp_path: Path) -> None:
    with served(answer_well) as server:
        build(tmp_path / "one", generator(server.url, tmp_path / "one" / "answers.jsonl"))
        build(tmp_path / "four", generator(server.url, tmp_path / "four" / "answers.jsonl"), workers=4)
    assert outputs(tmp_path / "one") == outputs(tmp_path / "four")


class Dying(Chat):
    """A chat in whose process somebody pulls the plug after so many answers."""

    left = 0

    def complete(self, messages: Any) -> Completion:
        answer = super().complete(messages)
        Dying.left -= 1
        if Dying.left < 0:
            raise KeyboardInterrupt
        return answer


@pytest.mark.parametrize("after", [0, 3, 8, 13])
def test_killed_anywhere_and_resumed_nothing_is_lost_or_asked_twice(tmp_path: Path, after: int) -> None:
    with served(answer_well) as server:
        build(tmp_path / "whole", generator(server.url, tmp_path / "whole" / "answers.jsonl"))
        wanted = list(server.asked)
        server.asked.clear()
        cache, Dying.left = tmp_path / "killed" / "answers.jsonl", after
        with pytest.raises(KeyboardInterrupt):
            build(tmp_path / "killed", EndpointGenerator(chats(server.url, cache, chat=Dying)))
        assert 0 < len(server.asked) <= after + 1
        build(tmp_path / "killed", generator(server.url, cache))
        assert sorted(map(json.dumps, server.asked)) == sorted(map(json.dumps, wanted))
        build(tmp_path / "killed", generator(server.url, cache))
        assert len(server.asked) == len(wanted) == 20
    assert outputs(tmp_path / "killed") == outputs(tmp_path / "whole")


@pytest.mark.parametrize("changed", ["temperature", "max_tokens", "url", "prompt", "photo"])
def test_a_shard_is_made_anew_where_a_setting_of_the_models_a_prompt_or_a_photo_changed(
    tmp_path: Path, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    photo = tmp_path / "1.bmp"
    Image.new("RGB", (8, 8)).save(photo)

    def key(url: str, **settings: Any) -> str:
        made_by = generator(url, tmp_path / "answers.jsonl", **settings)
        made = build_riln(FIVE[:1], tmp_path / "set", made_by, material=RilnMaterial(photo=lambda _: photo))
        return made.shards[0].key

    with served(answer_well) as server:
        before = key(server.url)
        assert key(server.url) == before
        if changed == "prompt":
            monkeypatch.setattr(endpoint, "_PROMPTS", ("Ask.",))
        if changed == "photo":
            Image.new("RGB", (8, 8), "white").save(photo)
        settings = {changed: 7} if changed in ("temperature", "max_tokens") else {}
        assert key(f"{server.url}/" if changed == "url" else server.url, **settings) != before


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    ("reply", "reason", "asked"),
    [
        (Reply("I'm sorry, but I can’t help with that."), replies.REFUSED, 2),
        (Reply('{"phrases": [{"words": 2, "impor'), replies.HALF_JSON, 2),
        (Reply('```json\n{"items": [{"turns": [{"ro'), replies.HALF_JSON, 2),
        (Reply("Lorem ipsum."), replies.NOT_JSON, 2),
        (Reply("{dog: 3}"), replies.NOT_JSON, 2),
        (Reply('{"phrases": 3, "items": 4}'), replies.WRONG_SCHEMA, 2),
        (Reply(status=500), replies.NO_ANSWER, 1),
        (Reply(status=403, raw=b"no"), replies.NO_ANSWER, 1),
        (Reply(raw=b'{"choices": [{"message": {"content": null, "refusal": "no"}}]}'), replies.NO_ANSWER, 1),
        (Reply(raw=b"\xff\xfe nonsense"), replies.NO_ANSWER, 1),
    ],
)
def test_what_a_model_gets_wrong_is_counted_by_its_name(
    tmp_path: Path, role: str, reply: Reply, reason: str, asked: int
) -> None:
    with served(failing(role, reply)) as server:
        made = build(tmp_path, generator(server.url, tmp_path / "answers.jsonl", tries=1), FIVE[:1])
    assert made.complete
    assert made.statistics.rejections[f"{role}: {reason}"] == 1
    assert sum(question["model"] == f"{role}-model" for question in server.asked) == asked
    assert made.statistics.unanswered == (reason == replies.NO_ANSWER)
    assert sum(made.statistics.questions.values()) == (12 if role == "dialogues" else 0)
    assert made.statistics.dialogues == 0


def test_a_model_is_told_what_was_wrong_and_may_answer_again(tmp_path: Path) -> None:
    def first_wrong(question: dict[str, Any], number: int) -> Reply:
        return Reply('{"phrases": [{"words": 2, "importance": 9}]}') if number == 0 else answer_well(question, number)

    with served(first_wrong) as server:
        made = build(tmp_path, generator(server.url, tmp_path / "answers.jsonl"), FIVE[:1])
    assert (made.statistics.rejections, made.statistics.calls["phrases"]) == ({}, 2)
    said = server.asked[1]["messages"]
    assert [message["role"] for message in said] == ["system", "user", "assistant", "user"]
    assert "not of the asked form" in said[3]["content"]


def test_an_endpoint_that_times_out_is_counted_and_asked_again_by_the_next_run(tmp_path: Path) -> None:
    cache = tmp_path / "answers.jsonl"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        made = build(tmp_path, generator(url, cache, timeout_s=0.05, tries=1), FIVE[:1])
    assert made.statistics.rejections == {"phrases: no answer": 1}
    assert made.statistics.unanswered == 1
    with served(answer_well) as server:
        made = build(tmp_path, generator(server.url, cache), FIVE[:1])
    assert (made.statistics.rejections, made.statistics.unanswered) == ({}, 0)
    assert sum(made.statistics.questions.values()) == 12


def test_a_model_that_stays_silent_is_given_up(tmp_path: Path) -> None:
    many = [told(str(i)) for i in range(SILENT_IN_A_ROW + 4)]
    with served(lambda question, number: Reply(status=500)) as server:
        made = build(tmp_path, generator(server.url, tmp_path / "answers.jsonl", tries=1), many)
    assert len(server.asked) == SILENT_IN_A_ROW
    assert made.statistics.rejections == {"phrases: no answer": len(many)}


def test_one_bad_item_costs_that_item_alone(tmp_path: Path) -> None:
    def one_bad(question: dict[str, Any], number: int) -> Reply:
        reply = answer_well(question, number)
        if question["model"] == "questions-model":
            items = _items(reply)
            items[0], items[1]["phrases"] = {"level": "cosmic"}, [99]
            return Reply(json.dumps({"items": [*items, items[5]]}))
        if question["model"] == "answers-model":
            return Reply(json.dumps({"items": [{"question": 0, "answer": "x", "reasoning": []}, *_items(reply)[1:9]]}))
        return reply

    with served(one_bad) as server:
        found = build(tmp_path, generator(server.url, tmp_path / "answers.jsonl"), FIVE[:1]).statistics
    assert found.rejections["questions: an item not of the asked form"] == 1
    assert found.rejections["questions: about phrases that are not there"] == 1
    assert found.rejections["questions: more than were asked for"] == 1
    assert found.rejections["questions: fewer than were asked for"] == 2
    assert found.rejections["answers: an item not of the asked form"] == 1
    assert found.rejections["answers: a question without an answer"] == 2


def test_points_that_nobody_pointed_at_are_refused(tmp_path: Path) -> None:
    def elsewhere(question: dict[str, Any], number: int) -> Reply:
        reply = answer_well(question, number)
        if question["model"] != "answers-model":
            return reply
        items = [{**item, "answer": "<traj>(999,0)</traj> a dog"} for item in _items(reply)]
        return Reply(json.dumps({"items": items}))

    with served(elsewhere) as server:
        found = build(tmp_path, generator(server.url, tmp_path / "answers.jsonl"), FIVE[:1]).statistics
    assert found.rejections["coordinates: outside what was pointed at"] == 12


def test_fewer_than_three_good_dialogues_leave_the_image_without_any(tmp_path: Path) -> None:
    def two(question: dict[str, Any], number: int) -> Reply:
        reply = answer_well(question, number)
        if question["model"] != "dialogues-model":
            return reply
        return Reply(json.dumps({"items": _items(reply)[:2]}))

    with served(two) as server:
        found = build(tmp_path, generator(server.url, tmp_path / "answers.jsonl"), FIVE[:1]).statistics
    assert found.dialogues == 0
    assert found.rejections == {"dialogues: fewer than three passed, so the image has none": 2}


def test_the_photo_goes_with_the_question(tmp_path: Path) -> None:
    photo = Image.new("RGB", (2000, 1000), "red")
    with served(lambda question, number: Reply('{"phrases": []}')) as server:
        made_by = EndpointGenerator(chats(server.url, tmp_path / "answers"), lambda image_id: photo)
        ledger = Ledger()
        assert made_by.phrases(told(), SPANS, ledger) == []
    (text, picture) = server.asked[0]["messages"][1]["content"]
    assert text["type"] == "text"
    assert picture["image_url"]["url"].startswith("data:image/jpeg;base64,")
    assert ledger.rejections == {"phrases: not of the asked form": 1}


@pytest.mark.parametrize(
    "text", ['{"items": []}', 'Here: {"items": []} Good?', '```json\n{"items": []}\n```', '{"items": []} {']
)
def test_json_is_found_among_other_words(text: str) -> None:
    assert read_reply(text, Listed).items == []


def test_a_reply_nested_without_end_is_no_crash() -> None:
    with pytest.raises(Unusable):
        read_reply('{"phrases": ' + "[" * 100_000 + "]" * 100_000 + "}", PhraseReplies)


def test_roles_are_read_with_a_default(tmp_path: Path) -> None:
    path = tmp_path / "roles.toml"
    path.write_text('[default]\nurl = "http://a/v1"\nmodel = "m"\n[answers]\nurl = "http://b/v1"\nmodel = "n"\n')
    roles = read_roles(path)
    assert [roles[role].model for role in ROLES] == ["m", "m", "n", "m"]


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        '[answers]\nurl = "http://b/v1"\nmodel = "n"\n',
        '[default]\nurl = "http://b/v1"\n',
        '[default]\nurl = "http://b/v1"\nmodel = "n"\ncolour = 3\n',
        '[default]\nurl = "http://b/v1"\nmodel = "n"\n[critic]\nurl = "http://b/v1"\nmodel = "n"\n',
    ],
)
def test_roles_that_cannot_be_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "roles.toml").write_text(text)
    with pytest.raises(InvalidFile):
        read_roles(tmp_path / "roles.toml")


def test_an_address_that_is_none_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "roles.toml").write_text('[default]\nurl = "ftp://b/v1"\nmodel = "n"\n')
    with pytest.raises(InvalidValue, match="not a web address"):
        read_roles(tmp_path / "roles.toml")


def _items(reply: Reply) -> list[Any]:
    content = json.loads(reply.body())["choices"][0]["message"]["content"]
    items: list[Any] = json.loads(content[content.index("{") : content.rindex("}") + 1])["items"]
    return items
