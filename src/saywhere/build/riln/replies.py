"""What models answer, read as JSON; whatever cannot be read has a name."""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeVar

import msgspec

from saywhere.build.riln.example import Kind, Level, Text, Thought

NO_ANSWER = "no answer"
REFUSED = "refused"
HALF_JSON = "half a JSON"
NOT_JSON = "not JSON"
WRONG_SCHEMA = "not of the asked form"

_REFUSAL = re.compile(
    r"\b(?:i(?:'m| am) (?:sorry|unable|not able)|i (?:can(?:'t|not| not)|won't|will not)|as an ai)\b", re.IGNORECASE
)
_FENCE = re.compile(r"```[a-z]*\s*\n?(.*?)(?:```|\Z)", re.DOTALL)
_Items = TypeVar("_Items", bound=msgspec.Struct)


class Unusable(Exception):
    """An answer that cannot be used. kind: one of the names above. detail: what exactly, to tell the model."""

    def __init__(self, kind: str, detail: str = "") -> None:
        self.kind, self.detail = kind, detail
        super().__init__(kind)


class PhraseReply(msgspec.Struct, frozen=True):
    """words: how many of the narrative's words, one phrase after the other."""

    words: Annotated[int, msgspec.Meta(ge=1)]
    importance: Annotated[int, msgspec.Meta(ge=1, le=5)]


class PhraseReplies(msgspec.Struct, frozen=True):
    phrases: list[PhraseReply]


class QuestionReply(msgspec.Struct, frozen=True):
    """phrases: numbers of the phrases that it is about."""

    level: Level
    kind: Kind
    question: Text
    phrases: list[int]


class ReasonedReply(msgspec.Struct, frozen=True):
    """question: the number of the question that it answers."""

    question: int
    answer: Text
    reasoning: Thought | None = None


class TurnItem(msgspec.Struct, frozen=True):
    role: Literal["user", "assistant"]
    text: Text


class DialogueItem(msgspec.Struct, frozen=True):
    turns: list[TurnItem]


class Listed(msgspec.Struct, frozen=True):
    """What every other reply is: items, each of which may be good or bad by itself."""

    items: list[msgspec.Raw]


def read_reply(text: str, kind: type[_Items]) -> _Items:
    """The first JSON value of an answer. Unusable if there is none, it breaks off or has another form."""
    body = _json_in(text)
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise Unusable(WRONG_SCHEMA, str(error)) from None
    except msgspec.DecodeError as error:
        raise Unusable(HALF_JSON if "truncated" in str(error) else NOT_JSON, str(error)) from None
    except RecursionError:
        raise Unusable(WRONG_SCHEMA, "it is nested too deeply") from None


def read_items(text: str, kind: type[_Items]) -> tuple[list[_Items], int]:
    """The items of an answer that are of the asked form, and how many are not."""
    good: list[_Items] = []
    raws = read_reply(text, Listed).items
    for raw in raws:
        try:
            good.append(msgspec.json.decode(raw, type=kind))
        except (msgspec.DecodeError, RecursionError):
            continue
    return good, len(raws) - len(good)


def _json_in(text: str) -> bytes:
    """From the first brace to the last; models write before, after and around what they were asked for."""
    fenced = _FENCE.search(text)
    body = fenced.group(1) if fenced and "{" in fenced.group(1) else text
    start, end = body.find("{"), body.rfind("}")
    if start < 0:
        raise Unusable(REFUSED if _REFUSAL.search(text.replace("’", "'")) else NOT_JSON, text[:200])
    try:
        return (body[start : end + 1] if _balanced(body[start : end + 1]) else body[start:]).encode()
    except UnicodeEncodeError:
        raise Unusable(NOT_JSON, "half a character") from None


def _balanced(body: str) -> bool:
    """Whether as many braces are closed as opened; text in quotation marks does not count."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", body)
    return bare.count("{") == bare.count("}") > 0
