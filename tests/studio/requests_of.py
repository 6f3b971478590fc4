"""Requests that nobody would think of, made from an OpenAPI description: a server for them, and its replies."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import requests
import schemathesis
import uvicorn
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.generation import GenerationMode
from schemathesis.transport.serialization import Binary

CASES = int(os.environ.get("SAYWHERE_API_CASES", "40"))
_ROUNDS = 5
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
HEADERS = st.sampled_from(
    [{}, {}, {"Range": "bytes=0-3"}, {"Range": "bytes=999999999-"}, {"Range": "x"}, {"If-Match": "*"}]
)
NOISE = st.dictionaries(
    st.text(st.characters(codec="utf-8"), max_size=5), st.text(st.characters(codec="utf-8")), max_size=2
)


@schemathesis.serializer("audio/wav")
def _sound(_: Any, value: Any) -> bytes:
    """Bodies of this kind are sent as they are."""
    return bytes(value.data) if isinstance(value, Binary) else str(value).encode("utf-8", "replace")


@contextmanager
def listening(make: Callable[[int], FastAPI]) -> Iterator[tuple[str, Any]]:
    """A server that runs, made for a port: its address, and its description."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
        app = make(port)
        running = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [door]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}", schemathesis.openapi.from_dict(json.loads(json.dumps(app.openapi())))
        finally:
            running.should_exit = True
            thread.join(20)


def replies(
    address: str,
    schema: Any,
    operation: str,
    ids: dict[str, str],
    change: Callable[[Any, bool], None],
    session: requests.Session,
    cases: int = CASES,
    *,
    refused: bool = False,
) -> Counter[int]:
    """Send requests for an operation, right and wrong, and check what comes back: the statuses.

    ids: of things that are there, by the names that paths have for them. change: makes a request about things that are
    there, if it is told so, so that more than their absence is tried. refused: nothing will be done; otherwise, if by
    chance no request was right, others follow.
    """
    method, path = operation.split(" ")
    target = schema[path][method.lower()]
    known = {name: ids[name] for name in ids if f"{{{name}}}" in path}
    takes_something = bool(known) or "requestBody" in target.definition.raw or target.definition.raw.get("parameters")
    strategies = [target.as_strategy(GenerationMode.POSITIVE, path_parameters=known or None)]
    if takes_something:
        strategies += [target.as_strategy(mode) for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)]
    statuses: Counter[int] = Counter()

    @given(case=st.one_of(strategies), query=NOISE, headers=HEADERS, fill=st.booleans())
    @settings(max_examples=cases, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None)
    def run(case: Any, query: dict[str, str], headers: dict[str, str], fill: bool) -> None:
        case.query = {**query, **(case.query or {})}
        case.headers.update(headers)
        change(case, fill)
        reply = case.call(base_url=address, session=session)
        statuses[reply.status_code] += 1
        case.validate_response(reply, checks=CHECKS)
        if reply.status_code >= 400:
            assert set(json.loads(reply.content)["error"]) == {"code", "message", "hint"}

    for number in range(_ROUNDS):
        seed(number)(run)()
        if refused or min(statuses) < 300:
            break
    assert statuses.total() >= cases
    assert max(statuses) < 500
    return statuses
