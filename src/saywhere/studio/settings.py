"""Everything about a Studio that can be set: where it keeps things, who may reach it, and every limit."""

from __future__ import annotations

import ipaddress
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from saywhere import loading
from saywhere.core.errors import InvalidValue

MB = 1_000_000
LEAST_TOKEN = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """What a Studio takes at most. More is refused: 413 for too much at once, 429 for too much at a time.

    photo_bytes, photo_pixels: of one photo. photos: in the store. regions, points: of one request for captions; points
    counts those of all its regions. text_words: of a text to be found. narrative_bytes, audio_bytes, import_bytes,
    chat_bytes: of one request's body; json_bytes: of any other. large_bytes: a body above this comes in by way of the
    disk, where all together take at most spool_bytes, and when it is whole takes one of `uploads` places in memory.
    connections: open at a time. header_s: until the head of a request is there. grace_s, floor_bytes_per_s: in so many
    seconds a body must come at this rate. body_s: until it is whole. write_s: until a client takes some more
    of its answer.
    queue: requests that wait for the model. photo_queue: uploads that wait to be decoded.
    looks, look_bytes: kept in memory. conversations: kept in memory, too. turns: of one conversation.
    jobs: remembered. job_photos: of one job. listeners: open streams of events.
    load_wait_s: how long a request waits for a model that still loads.
    """

    photo_bytes: int = 25 * MB
    photo_pixels: int = 40 * MB
    photos: int = 10_000
    regions: int = 256
    points: int = 100_000
    text_words: int = 400
    narrative_bytes: int = 8 * MB
    audio_bytes: int = 64 * MB
    import_bytes: int = 100 * MB
    chat_bytes: int = 35 * MB
    json_bytes: int = 8 * MB
    large_bytes: int = 1 * MB
    spool_bytes: int = 1_000 * MB
    uploads: int = 4
    connections: int = 512
    header_s: float = 10.0
    grace_s: float = 10.0
    floor_bytes_per_s: int = 4_000
    body_s: float = 900.0
    write_s: float = 30.0
    queue: int = 32
    photo_queue: int = 16
    looks: int = 64
    look_bytes: int = 512 * MB
    conversations: int = 32
    turns: int = 100
    jobs: int = 100
    job_photos: int = 1_000
    listeners: int = 64
    load_wait_s: float = 30.0


@dataclass(frozen=True, slots=True)
class StudioSettings:
    """One Studio.

    folder: where photos and narratives are kept. host, port: where it listens; 0 is any free port.
    token: what a client must know; must be there if others than this computer can reach the host.
    hosts: further names that browsers may call this server by. photos: a folder to take photos from at the start.
    videos: a file of video narratives to replay, or a folder of videos to tell about. library: a folder of photos to
    search; the shelf if there is none.
    model: what `saywhere.load` loads.
    study: the folder of a trust study to be taken part in.
    collection: the folder of a collection of captions. hold_s: how long one of its photos is kept for who sees it.
    """

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8765
    token: str = ""
    hosts: tuple[str, ...] = ()
    photos: Path | None = None
    videos: Path | None = None
    library: Path | None = None
    model: str = loading.BASE
    limits: Limits = field(default_factory=Limits)
    study: Path | None = None
    collection: Path | None = None
    hold_s: float = 900.0

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise InvalidValue("port", f"is {self.port}, not within 0 … 65535")
        if self.token and (len(self.token) < LEAST_TOKEN or not self.token.isascii() or not self.token.isprintable()):
            raise InvalidValue("token", f"must be at least {LEAST_TOKEN} plain characters")
        if any(character in self.token for character in ' ;,"\\'):
            raise InvalidValue("token", 'holds a space or one of ; , " \\', "letters, digits, - and _ are best")
        if not 1 <= self.hold_s <= 86_400:
            raise InvalidValue("hold", f"is {self.hold_s:g} s, not within a second and a day")
        if not is_loopback(self.host) and not self.token:
            hint = "set $SAYWHERE_TOKEN, or give --token-file"
            raise InvalidValue("host", f"{self.host} can be reached by others, so a token is needed", hint)


def is_loopback(host: str) -> bool:
    """Whether only this computer can reach a server bound to this host."""
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def is_everywhere(host: str) -> bool:
    """Whether this host means all addresses of the computer: 0.0.0.0 or ::."""
    address = _address(host)
    return address is not None and address.is_unspecified


def is_address(host: str) -> bool:
    """Whether this is a number, which no name server can turn into another."""
    return _address(host) is not None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def default_folder() -> Path:
    """The Studio's folder among the user's data; $SAYWHERE_STUDIO if set."""
    if chosen := os.environ.get("SAYWHERE_STUDIO"):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        data = Path.home() / "Library" / "Application Support"
    elif sys.platform == "win32":
        data = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return data / "saywhere" / "studio"
