"""A language model behind an OpenAI-compatible endpoint: chat completions, with retries and a cache on disk.

The key is read from an environment variable when a question is sent. It goes into one header and nowhere else: not into
the cache, nor into any error. Redirects are refused, because the key would travel with them.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from saywhere.core.errors import InvalidFile, InvalidValue, SaywhereError

KEY_VARIABLE = "SAYWHERE_LLM_KEY"
"""Named after us, so that nobody's key for one service is sent to another by accident."""

_MAX_ANSWER_BYTES = 8 * 2**20
_LONGEST_WAIT_S = 60.0
_LOCAL = ("localhost", "127.0.0.1", "::1")

Message = Mapping[str, Any]
"""One turn of a chat: {"role": …, "content": …}."""


class EndpointFailed(SaywhereError, RuntimeError):
    """An endpoint refused, fell silent or answered nonsense. status: of HTTP, or None if there was no answer."""

    def __init__(self, url: str, reason: str, status: int | None = None) -> None:
        self.url, self.reason, self.status = url, reason, status
        super().__init__(f"{url}: {reason}")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to ask. url: of the API, up to and with "/v1". model: as the endpoint names it.

    key_variable: the environment variable with the key; none is sent where it is unset or empty. timeout_s: seconds
    without a sign of life. tries: how often a question is sent before giving up. max_tokens: of an answer.
    """

    url: str
    model: str
    key_variable: str = KEY_VARIABLE
    timeout_s: float = 60.0
    tries: int = 5
    max_tokens: int = 200
    temperature: float = 0.0

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidValue("endpoint", f"{self.url!r} is not a web address", "such as http://127.0.0.1:8000/v1")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise InvalidValue("endpoint", "its address holds more than host and path", "a key goes into a variable")
        if not self.model:
            raise InvalidValue("endpoint", "no model is named")
        if not (self.timeout_s > 0 and self.tries >= 1 and self.max_tokens >= 1):
            raise InvalidValue("endpoint", "timeout_s must be above 0, tries and max_tokens at least 1")

    @property
    def is_local(self) -> bool:
        return urlsplit(self.url).hostname in _LOCAL


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer, and the tokens of question and answer as the endpoint counts them; 0 where it does not say."""

    text: str
    prompt_tokens: int = 0
    answer_tokens: int = 0


@dataclass(slots=True)
class AnswerCache:
    """Answers by question, one JSON line each, added as they come: a run that was stopped goes on where it was.

    A last line that was cut off is written over. Keys are hashes of endpoint, model and question; see `Chat`. With
    each answer stands how many tokens went into it, so that the price of a result is known without asking again.
    """

    path: Path
    _answers: dict[str, Completion] = field(init=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    _asking: dict[str, threading.Lock] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        whole = 0
        try:
            content = self.path.read_bytes() if self.path.exists() else b""
            for line in content.splitlines(keepends=True):
                if not line.endswith(b"\n"):
                    break
                key, answer, *tokens = json.loads(line)
                self._answers[str(key)] = Completion(str(answer), *map(int, tokens))
                whole += len(line)
            if whole < len(content):
                with self.path.open("r+b") as file:
                    file.truncate(whole)
        except OSError as error:
            raise InvalidFile(self.path, f"cannot be used as a cache: {error.strerror or error}") from error
        except (ValueError, TypeError) as error:
            raise InvalidFile(self.path, "is not a cache of answers", "name another file") from error

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: str) -> str | None:
        known = self._answers.get(key)
        return None if known is None else known.text

    def completion(self, key: str) -> Completion | None:
        return self._answers.get(key)

    def asking(self, key: str) -> threading.Lock:
        """To be held by whoever asks this question."""
        with self._lock:
            return self._asking.setdefault(key, threading.Lock())

    def add(self, key: str, answer: str, prompt_tokens: int = 0, answer_tokens: int = 0) -> None:
        line = [key, answer, *((prompt_tokens, answer_tokens) if prompt_tokens or answer_tokens else ())]
        with self._lock:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("ab") as file:
                    file.write(json.dumps(line).encode("ascii") + b"\n")
            except OSError as error:
                raise InvalidFile(self.path, f"cannot be written: {error.strerror or error}") from error
            self._answers[key] = Completion(answer, prompt_tokens, answer_tokens)


class Chat:
    """Questions to one endpoint. Safe to use from several threads.

    cache: answers that are known are not asked for again. sleep: how to wait between tries, in seconds.
    """

    def __init__(
        self, endpoint: Endpoint, cache: AnswerCache | None = None, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.endpoint, self.cache, self._sleep = endpoint, cache, sleep
        # An endpoint on this machine is never reached through somebody's proxy.
        proxies = urllib.request.ProxyHandler({}) if endpoint.is_local else urllib.request.ProxyHandler()
        self._opener = urllib.request.build_opener(proxies, _NoRedirect)

    def ask(self, messages: Sequence[Message]) -> str:
        """The answer's text, without white space around it. EndpointFailed after the last try."""
        return self.complete(messages).text

    def known(self, messages: Sequence[Message]) -> Completion | None:
        """The answer, if the cache has it."""
        return self.cache.completion(self._key(self._body(messages))) if self.cache is not None else None

    def complete(self, messages: Sequence[Message]) -> Completion:
        """The answer and its tokens, from the cache if it is known. EndpointFailed after the last try."""
        body = self._body(messages)
        if self.cache is None:
            return self._sent(body)
        key = self._key(body)
        # Threads that ask the same wait for the first of them, so that nothing is paid twice.
        with self.cache.asking(key):
            known = self.cache.completion(key)
            if known is not None:
                return known
            answer = self._sent(body)
            self.cache.add(key, answer.text, answer.prompt_tokens, answer.answer_tokens)
            return answer

    def ask_many(self, questions: Sequence[Sequence[Message]], workers: int = 4) -> Iterator[str]:
        """Answers in the order of the questions, `workers` asked at a time. The first failure ends it."""
        with ThreadPoolExecutor(max_workers=workers) as pool:
            asked = [pool.submit(self.ask, question) for question in questions]
            try:
                for one in asked:
                    yield one.result()
            finally:
                for one in asked:
                    one.cancel()

    def _key(self, body: bytes) -> str:
        # The same model name may mean another model elsewhere.
        return hashlib.sha256(self.endpoint.url.encode() + b"\n" + body).hexdigest()

    def _body(self, messages: Sequence[Message]) -> bytes:
        question = {
            "model": self.endpoint.model,
            "messages": list(messages),
            "max_tokens": self.endpoint.max_tokens,
            "temperature": self.endpoint.temperature,
        }
        return json.dumps(question, sort_keys=True).encode("ascii")

    def _sent(self, body: bytes) -> Completion:
        wait_s, tried = 1.0, 1
        while True:
            try:
                return self._once(body)
            except _TryAgain as failure:
                if tried == self.endpoint.tries:
                    reason = f"{failure.reason} ({tried} tries)" if tried > 1 else failure.reason
                    raise EndpointFailed(self.endpoint.url, reason, failure.status) from failure
                self._sleep(min(wait_s if failure.after_s is None else failure.after_s, _LONGEST_WAIT_S))
            wait_s, tried = 2 * wait_s, tried + 1

    def _once(self, body: bytes) -> Completion:
        request = urllib.request.Request(f"{self.endpoint.url.rstrip('/')}/chat/completions", data=body, method="POST")
        request.add_header("Content-Type", "application/json")
        key = os.environ.get(self.endpoint.key_variable, "").strip()
        if key:
            # Unlike a plain header, this one is never sent on to where a redirect points.
            request.add_unredirected_header("Authorization", f"Bearer {key}")
        try:
            with self._opener.open(request, timeout=self.endpoint.timeout_s) as answer:
                return self._completion(answer.read(_MAX_ANSWER_BYTES + 1))
        except urllib.error.HTTPError as error:
            said = _without(key, _body_of(error))
            raise self._refusal(error.code, said, _seconds(error.headers.get("Retry-After"))) from None
        except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            raise _TryAgain(f"no answer: {_without(key, str(reason)) or type(error).__name__}") from None

    def _refusal(self, status: int, said: str, after_s: float | None) -> Exception:
        reason = f"answered {status}" + (f": {' '.join(said.split())[:300]}" if said.strip() else "")
        if status in (408, 409, 425, 429) or status >= 500:
            return _TryAgain(reason, status, after_s)
        hint = f"; the key is read from {self.endpoint.key_variable}" if status in (401, 403) else ""
        return EndpointFailed(self.endpoint.url, reason + hint, status)

    def _completion(self, answer: bytes) -> Completion:
        if len(answer) > _MAX_ANSWER_BYTES:
            raise EndpointFailed(self.endpoint.url, f"answered more than {_MAX_ANSWER_BYTES / 2**20:.0f} MiB")
        try:
            decoded = json.loads(answer)
            text = decoded["choices"][0]["message"]["content"]
        except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
            raise EndpointFailed(self.endpoint.url, "answered something that is not a chat completion") from error
        if not isinstance(text, str):
            raise EndpointFailed(self.endpoint.url, "answered without any text")
        usage = decoded.get("usage")
        return Completion(text.strip(), _tokens(usage, "prompt_tokens"), _tokens(usage, "completion_tokens"))


class _TryAgain(Exception):
    """What may go better the next time."""

    def __init__(self, reason: str, status: int | None = None, after_s: float | None = None) -> None:
        self.reason, self.status, self.after_s = reason, status, after_s
        super().__init__(reason)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self,
        req: urllib.request.Request,  # noqa: ARG002 - the names are urllib's
        fp: IO[bytes],  # noqa: ARG002
        code: int,  # noqa: ARG002
        msg: str,  # noqa: ARG002
        headers: HTTPMessage,  # noqa: ARG002
        newurl: str,  # noqa: ARG002
    ) -> None:
        return None


def _body_of(error: urllib.error.HTTPError) -> str:
    """How the endpoint explains an error; empty if it breaks off."""
    try:
        with error:
            return error.read(2000).decode("utf-8", "replace")
    except (OSError, HTTPException):
        return ""


def _tokens(usage: object, name: str) -> int:
    """How many tokens an endpoint says it used; 0 if it does not."""
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if isinstance(count, int) and count >= 0 else 0


def _without(key: str, text: str) -> str:
    return text.replace(key, "…") if key else text


def _seconds(header: str | None) -> float | None:
    try:
        return max(0.0, float(header)) if header else None
    except ValueError:
        return None
