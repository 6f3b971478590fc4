"""The client of OpenAI-compatible endpoints, against a small server on this machine."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from saywhere.build.llm import KEY_VARIABLE, AnswerCache, Chat, Completion, Endpoint, EndpointFailed
from saywhere.core import InvalidFile, InvalidValue
from tests.build.endpoint import Reply, served

KEY = "secret-key-of-nobody"
QUESTION = [{"role": "user", "content": "Hello?"}]


def test_a_question_goes_to_the_chat_path_with_model_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with served(lambda question, number: Reply("  Good day.\n")) as server:
        assert Chat(Endpoint(server.url + "/", "small")).ask(QUESTION) == "Good day."
    assert server.paths == ["/v1/chat/completions"]
    assert server.asked[0]["model"] == "small"
    assert server.asked[0]["messages"] == QUESTION
    assert server.asked[0]["temperature"] == 0
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_without_a_key_no_key_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    with served(lambda question, number: Reply("yes")) as server:
        Chat(Endpoint(server.url, "small")).ask(QUESTION)
    assert "Authorization" not in server.headers[0]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_endpoint_is_asked_again_and_waits_double_each_time(status: int) -> None:
    waits: list[float] = []
    with served(lambda question, number: Reply("at last") if number == 3 else Reply(status=status)) as server:
        assert Chat(Endpoint(server.url, "small"), sleep=waits.append).ask(QUESTION) == "at last"
    assert waits == [1, 2, 4]


def test_an_endpoint_that_says_when_to_come_back_is_obeyed_within_reason() -> None:
    waits: list[float] = []
    replies = [Reply(status=429, headers={"Retry-After": "7"}), Reply(status=429, headers={"Retry-After": "9999"})]
    with served(lambda question, number: replies[number] if number < 2 else Reply("ok")) as server:
        Chat(Endpoint(server.url, "small"), sleep=waits.append).ask(QUESTION)
    assert waits == [7, 60]


def test_after_the_last_try_the_error_says_what_happened() -> None:
    with served(lambda question, number: Reply(status=503, raw=b"overloaded")) as server:
        with pytest.raises(EndpointFailed, match=r"answered 503: overloaded \(3 tries\)") as failed:
            Chat(Endpoint(server.url, "small", tries=3), sleep=lambda s: None).ask(QUESTION)
        assert len(server.asked) == 3
    assert failed.value.status == 503


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_refusal_is_final_and_never_shows_the_key(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with served(lambda question, number: Reply(status=status, raw=f"bad key {KEY}!".encode())) as server:
        with pytest.raises(EndpointFailed, match=f"answered {status}: bad key …!") as failed:
            Chat(Endpoint(server.url, "small"), sleep=lambda s: None).ask(QUESTION)
        assert len(server.asked) == 1
    assert KEY not in str(failed.value)


def test_a_redirect_is_refused_because_the_key_would_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with served(lambda question, number: Reply("stolen")) as thief:
        elsewhere = Reply(status=302, headers={"Location": thief.url})
        with served(lambda question, number: elsewhere) as server, pytest.raises(EndpointFailed, match="answered 302"):
            Chat(Endpoint(server.url, "small")).ask(QUESTION)
        assert thief.asked == []


@pytest.mark.parametrize("raw", [b"", b"[]", b"not json", b'{"choices": []}', b'{"choices": [{"message": {}}]}'])
def test_an_answer_that_is_no_chat_completion_is_a_clear_error(raw: bytes) -> None:
    with (
        served(lambda question, number: Reply(raw=raw)) as server,
        pytest.raises(EndpointFailed, match="not a chat completion"),
    ):
        Chat(Endpoint(server.url, "small")).ask(QUESTION)


def test_nobody_there_is_an_error_after_all_tries() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    waits: list[float] = []
    with pytest.raises(EndpointFailed, match=r"no answer: .*refused"):
        Chat(Endpoint(url, "small", tries=2), sleep=waits.append).ask(QUESTION)
    assert waits == [1]


def test_an_endpoint_that_falls_silent_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        with pytest.raises(EndpointFailed, match=r"no answer: .*timed out"):
            Chat(Endpoint(url, "small", timeout_s=0.1, tries=1)).ask(QUESTION)


def test_known_answers_are_not_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    path = tmp_path / "deep" / "answers"
    with served(lambda question, number: Reply(f"answer {number} with ünïcode")) as server:
        endpoint = Endpoint(server.url, "small")
        first = Chat(endpoint, AnswerCache(path)).ask(QUESTION)
        again = Chat(endpoint, AnswerCache(path)).ask(QUESTION)
        other_model = Chat(Endpoint(server.url, "big"), AnswerCache(path)).ask(QUESTION)
        assert first == again == "answer 0 with ünïcode"
        assert other_model == "answer 1 with ünïcode"
        assert len(server.asked) == 2
    assert len(AnswerCache(path)) == 2
    assert KEY not in path.read_text()


def test_the_same_question_from_several_threads_is_asked_once(tmp_path: Path) -> None:
    with served(lambda question, number: Reply(f"answer {number}")) as server:
        chat = Chat(Endpoint(server.url, "small"), AnswerCache(tmp_path / "answers"))
        assert list(chat.ask_many([QUESTION] * 8, workers=8)) == ["answer 0"] * 8
        assert len(server.asked) == 1


def test_tokens_are_kept_with_the_answer(tmp_path: Path) -> None:
    body = b'{"choices": [{"message": {"content": "yes"}}], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}'
    with served(lambda question, number: Reply(raw=body)) as server:
        endpoint = Endpoint(server.url, "small")
        Chat(endpoint, AnswerCache(tmp_path / "answers")).ask(QUESTION)
        again = Chat(endpoint, AnswerCache(tmp_path / "answers"))
        assert again.known(QUESTION) == again.complete(QUESTION) == Completion("yes", 7, 2)
        assert len(server.asked) == 1


def test_a_cache_cut_off_in_the_middle_of_a_line_goes_on_before_it(tmp_path: Path) -> None:
    path = tmp_path / "answers"
    cache = AnswerCache(path)
    cache.add("a", "one")
    cache.add("b", "two")
    path.write_bytes(path.read_bytes()[:-4])
    torn = AnswerCache(path)
    assert (torn.get("a"), torn.get("b")) == ("one", None)
    torn.add("b", "three")
    assert AnswerCache(path).get("b") == "three"


def test_a_file_that_is_no_cache_is_not_written_into(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my notes\n")
    with pytest.raises(InvalidFile, match="not a cache"):
        AnswerCache(path)
    assert path.read_text() == "my notes\n"


def test_many_answers_come_in_the_order_of_the_questions() -> None:
    questions = [[{"role": "user", "content": str(i)}] for i in range(20)]
    with served(lambda question, number: Reply("re " + question["messages"][0]["content"])) as server:
        answers = list(Chat(Endpoint(server.url, "small")).ask_many(questions, workers=5))
    assert answers == [f"re {i}" for i in range(20)]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://host/v1", "not a web address"),
        ("127.0.0.1:80", "not a web address"),
        ("file:///etc/hosts", "not a web address"),
        ("http://me:pass@host/v1", "more than host and path"),
        ("http://host/v1?key=1", "more than host and path"),
    ],
)
def test_an_address_that_is_none_or_holds_a_key_is_refused(url: str, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        Endpoint(url, "small")
