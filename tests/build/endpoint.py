"""A tiny OpenAI-compatible endpoint on this machine, which answers as it is told and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """status and body of an answer; body "text" becomes a chat completion."""

    text: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None

    def body(self) -> bytes:
        if self.raw is not None:
            return self.raw
        return json.dumps({"choices": [{"message": {"role": "assistant", "content": self.text}}]}).encode()


@dataclass
class Served:
    url: str
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


@contextmanager
def served(answer: Callable[[dict[str, Any], int], Reply]) -> Iterator[Served]:
    """answer: gets the question and how many came before it."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                number = len(here.asked)
                here.asked.append(question)
                here.headers.append(dict(self.headers))
                here.paths.append(self.path)
            reply = answer(question, number)
            body = reply.body()
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(body)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    here = Served(f"http://127.0.0.1:{server.server_address[1]}/v1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield here
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)
