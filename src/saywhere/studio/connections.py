"""Connections that stall are not waited for: how long a request may take to come, and an answer to be taken.

uvicorn waits for ever for the rest of a request. Here each connection is looked at once in a while; what is too slow is
answered with 408 and closed, and where there are too many, the one that waited longest goes.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from saywhere.studio.settings import Limits

_TIMED_OUT = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_TINY_CHUNKS = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
# A chunk has two ends of line. Whole heads have a hundred at most; chunks of fewer bytes than this cost more than they
# bring.
_FREE_LINES, _LEAST_CHUNK = 1_000, 16
_LOOKS_A_TIMEOUT = 5


def server_of(app: Any, limits: Limits) -> uvicorn.Server:
    """A server of the app that waits as long as the limits say."""

    class Bounded(PatientProtocol):
        """With these limits: uvicorn makes one for every connection."""

    Bounded.limits = limits
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=Bounded,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=3,
        )
    )


class PatientProtocol(H11Protocol):
    """One connection. Its patience has an end."""

    limits = Limits()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since, self._wire, self._lines = self.loop.time(), 0, 0
        self._window = self._since, 0
        self._unread, self._unread_since = 0, self._since
        self._every = min(self.limits.header_s, self.limits.grace_s, self.limits.write_s) / _LOOKS_A_TIMEOUT
        self._next = self.loop.call_later(self._every, self._look)
        if len(self.connections) > self.limits.connections:
            waiting = [one for one in self.connections if isinstance(one, PatientProtocol) and one.is_waiting]
            min(waiting, key=lambda one: one._since, default=self).end(_TIMED_OUT)

    def connection_lost(self, exc: Exception | None) -> None:
        self._next.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.conn.their_state is h11.IDLE and not self._wire:
            self._since = self.loop.time()
        self._wire += len(data)
        self._lines += data.count(b"\r\n")
        if self._lines > _FREE_LINES + self._wire // (_LEAST_CHUNK // 2):
            self.end(_TINY_CHUNKS)
            return
        super().data_received(data)

    def on_response_complete(self) -> None:
        self._wire = self._lines = 0
        self._since = self.loop.time()
        super().on_response_complete()

    @property
    def is_waiting(self) -> bool:
        """Whether the client has yet to send something: a request, or the rest of one."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def end(self, said: bytes) -> None:
        """Close the connection, with a word if no answer has begun."""
        if self.transport.is_closing():
            return
        begun = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if self._wire and not begun:
            self.transport.write(said)
        self.transport.close()
        if self.transport.get_write_buffer_size():
            # Whoever does not read will not read this either.
            self.transport.abort()

    def _look(self) -> None:
        now = self.loop.time()
        if self._is_slow(now):
            self.end(_TIMED_OUT)
        elif self._is_unread(now):
            self.transport.abort()
        else:
            self._next = self.loop.call_later(self._every, self._look)

    def _is_slow(self, now: float) -> bool:
        waited = now - self._since
        if self.conn.their_state is h11.IDLE:
            self._window = now, 0
            # Between two requests uvicorn itself counts the seconds.
            return self.timeout_keep_alive_task is None and waited > self.limits.header_s
        if self.conn.their_state is not h11.SEND_BODY or self.flow.read_paused:
            self._window = now, self._wire
            return False
        begun, before = self._window
        if now - begun < self.limits.grace_s:
            return waited > self.limits.body_s
        self._window = now, self._wire
        return self._wire - before < (now - begun) * self.limits.floor_bytes_per_s

    def _is_unread(self, now: float) -> bool:
        """Whether nothing of an answer was taken for too long."""
        left = self.transport.get_write_buffer_size()
        if not left or left != self._unread:
            self._unread, self._unread_since = left, now
        return now - self._unread_since > self.limits.write_s
