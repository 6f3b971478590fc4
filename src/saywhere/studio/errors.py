"""How any error ends: as JSON with a code for programs, a message and a hint for people, and never a traceback."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as PlainHttpException
from starlette.requests import ClientDisconnect

from saywhere.assets.registry import AssetUnavailable
from saywhere.atomic import DiskFull
from saywhere.core.errors import InvalidFile, InvalidValue, MissingDependency, SaywhereError, UnknownName
from saywhere.models.face import MissingSkill

log = logging.getLogger("saywhere.studio")
_MOST_CHARACTERS = 600
_MOST_SAID = 3
_PLAIN = {
    404: ("not_found", "there is nothing at this address"),
    405: ("method_not_allowed", "this address does not take this method"),
}


class Refused(HTTPException):
    """A request that is not served: HTTP status, a code for programs, and a message and a hint for people."""

    def __init__(
        self, status: int, code: str, message: str, hint: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        self.code, self.message, self.hint = code, message, hint
        super().__init__(status, message, dict(headers) if headers else None)


def busy(what: str) -> Refused:
    """Too many at a time."""
    return Refused(429, "busy", what, "try again in a second", {"Retry-After": "1"})


def too_large(what: str, size: int, most: int, unit: str = "") -> Refused:
    """Too much at once."""
    amount = f"{size:,}{unit}, more than {most:,}" if size > most else f"more than {most:,}{unit}"
    return Refused(413, "too_large", f"{what}: {amount}", "send less at once")


def error_reply(
    status: int, code: str, message: str, hint: str = "", headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """The one form that every error has."""
    said = {"code": code, "message": _sayable(message), "hint": _sayable(hint)}
    return JSONResponse({"error": said}, status, headers)


def reply_to(error: Exception) -> JSONResponse:
    """What is answered to an error that was raised on purpose."""
    if isinstance(error, Refused):
        return error_reply(error.status_code, error.code, error.message, error.hint, error.headers)
    if isinstance(error, InvalidValue):
        return error_reply(422, "invalid_value", f"{error.what}: {error.reason}", error.hint)
    if isinstance(error, MissingSkill):
        return error_reply(409, "no_skill", str(error), error.hint)
    if isinstance(error, UnknownName):
        nearest = " or ".join(error.did_you_mean)
        return error_reply(
            404,
            f"unknown_{error.kind}",
            f"there is no {error.kind} {error.name}",
            nearest and f"did you mean {nearest}?",
        )
    if isinstance(error, MissingDependency | AssetUnavailable):
        return error_reply(503, "not_installed", str(error), error.how_to_get)
    if isinstance(error, DiskFull):
        log.error("the disk is full: %s", error)
        return error_reply(507, "disk_full", "the Studio's disk is full; nothing was kept", "free some room on it")
    if isinstance(error, InvalidFile):
        log.error("a file of the studio is damaged: %s", error)
        return error_reply(500, "damaged_file", f"{Path(error.path).name}: {error.reason}", error.hint)
    if isinstance(error, PlainHttpException):
        code, message = _PLAIN.get(error.status_code, ("bad_request", str(error.detail)))
        return error_reply(error.status_code, code, message, headers=error.headers)
    return error_reply(422, "refused", str(error))


def install(app: FastAPI, headers: Mapping[str, str]) -> None:
    """Make the app answer every error in this form.

    headers: for replies to unforeseen errors, which no other layer of the app can add to.
    """

    def on_purpose(_: Request, error: Exception) -> JSONResponse:
        return reply_to(error)

    def not_valid(_: Request, error: Exception) -> JSONResponse:
        return error_reply(422, "invalid_request", _validation_message(error))

    def gone(_: Request, __: Exception) -> JSONResponse:
        return error_reply(400, "gone", "the client left before its request was whole")

    def unforeseen(request: Request, error: Exception) -> JSONResponse:
        number = secrets.token_hex(4)
        # The server's own log carries the traceback: this error is raised on after it was answered.
        log.error("error %s in %s %s: %s", number, request.method, request.url.path, type(error).__name__)
        message = f"something went wrong in the Studio; its log has the reason under {number}"
        return error_reply(500, "internal", message, headers=headers)

    app.add_exception_handler(SaywhereError, on_purpose)
    app.add_exception_handler(PlainHttpException, on_purpose)
    app.add_exception_handler(RequestValidationError, not_valid)
    app.add_exception_handler(ClientDisconnect, gone)
    app.add_exception_handler(Exception, unforeseen)


def _validation_message(error: Exception) -> str:
    """What is wrong with which part, for the first few mistakes. What was sent is not repeated."""
    mistakes = error.errors() if isinstance(error, RequestValidationError) else []
    said = [f"{_part(one['loc'])} {_mistake(one)}" for one in mistakes[:_MOST_SAID]]
    if len(mistakes) > _MOST_SAID:
        said.append(f"and {len(mistakes) - _MOST_SAID:,} more")
    return "; ".join(said)


def _part(where: Sequence[str | int]) -> str:
    """What people call a part of a request: "regions 2, xyxy". Numbers count from 0, as everywhere in the API."""
    named = "".join(f" {part}" if isinstance(part, int) else f", {part}" for part in where[1:])
    return named.removeprefix(", ") or "the request"


def _mistake(one: Mapping[str, Any]) -> str:
    facts = one.get("ctx", {})
    if one["type"] == "json_invalid":
        return f"cannot be read, it is not JSON: {facts['error']}"
    if one["type"] in _TOO_FEW and facts[_TOO_FEW[one["type"]]] == 1:
        return "is empty"
    if one["type"] in _MISTAKES:
        return _MISTAKES[one["type"]].format(**facts)
    message = str(one["msg"])
    return f"is not right: {message[:1].lower()}{message[1:]}"


_MISTAKES = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "string_too_long": "is too long: at most {max_length:,} characters",
    "string_too_short": "is too short: at least {min_length:,} characters",
    "too_long": "holds too much: at most {max_length:,}",
    "too_short": "holds too little: at least {min_length:,}",
    "string_type": "is not text",
    "bool_type": "is neither true nor false",
    "list_type": "is not a list",
    "int_parsing": "is not a whole number",
    "int_type": "is not a whole number",
    "int_from_float": "is not a whole number",
    "float_parsing": "is not a number",
    "float_type": "is not a number",
    "finite_number": "is not a finite number",
    "greater_than_equal": "is too small: at least {ge}",
    "less_than_equal": "is too large: at most {le}",
    "string_pattern_mismatch": "does not have the right form",
    "literal_error": "must be {expected}",
    "union_tag_not_found": "has no {discriminator}",
    "union_tag_invalid": "is of no known {discriminator}: it must be one of {expected_tags}",
}
"""What pydantic finds, for people."""
_TOO_FEW = {"string_too_short": "min_length", "too_short": "min_length"}
"""Where at least one is wanted, there is none."""


def _sayable(text: str) -> str:
    """Text that is surely UTF-8, and not too long."""
    short = text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"
    return short.encode("utf-8", "replace").decode("utf-8")
