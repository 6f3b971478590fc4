"""An object store on this machine that speaks as Amazon's S3 does, conditional writes included: moto's server.

It has a Python of its own, which `make` sets up beside that of the tests (store_server.txt), because Amazon's client,
of which it is made, wants older packages than ours.
"""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

BUCKET = "bucket"
PYTHON = Path(os.environ.get("SAYWHERE_STORE_PYTHON", Path(sys.prefix, "store", "bin", "python")))
ABSENT = f"needs an object store: make store, or SAYWHERE_STORE_PYTHON, a Python with moto (no {PYTHON})"
_BEGINS_WITHIN_S = 60.0


@dataclass(frozen=True)
class StoreServer:
    """A server with one bucket. Any key opens it, until it is told to ask for one that it gave out: there is none."""

    port: int

    @property
    def environment(self) -> dict[str, str]:
        """By which it is found."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
        }

    def url(self, name: str) -> str:
        return f"s3://{BUCKET}/{name}"

    def ask(self, method: str, path: str, body: str = "") -> int:
        """The status of the answer to a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_BEGINS_WITHIN_S)
        try:
            connection.request(method, path, body)
            return connection.getresponse().status
        finally:
            connection.close()

    @contextmanager
    def refusing_keys(self) -> Iterator[None]:
        """No key opens it meanwhile."""
        self.ask("POST", "/moto-api/reset-auth", "0")
        try:
            yield
        finally:
            self.ask("POST", "/moto-api/reset-auth", "inf")


@contextmanager
def store_server() -> Iterator[StoreServer]:
    """A server with an empty bucket, which ends with the block."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        server = StoreServer(free.getsockname()[1])
    command = [str(PYTHON), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(server.port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + _BEGINS_WITHIN_S
        while process.poll() is None and time.monotonic() < end:
            with suppress(ConnectionError):
                assert server.ask("PUT", f"/{BUCKET}") == 200
                break
            time.sleep(0.1)
        yield server
    finally:
        process.kill()
        process.wait()
