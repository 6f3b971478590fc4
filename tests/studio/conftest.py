"""A Studio with a model that is quick because it sees nothing."""

from __future__ import annotations

import io
import json
import struct
import threading
import wave
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient
from PIL import Image

from saywhere.core import Box, Caption, Frame, Grounded, Mask, Narrative, Nearest, Region, Trace, WordBoxes
from saywhere.core.errors import InvalidValue
from saywhere.core.types import Progress
from saywhere.language.sound import Sound
from saywhere.language.transcript import Transcript
from saywhere.models.face import Answer, Conversation, Look, Spoken, check_level
from saywhere.models.search import GREEDY
from saywhere.studio.app import create_app
from saywhere.studio.settings import Limits, StudioSettings
from saywhere.vision import Found, PhotoLike, View, read_photo

HOME = "http://127.0.0.1:8765"
GRID = (4, 6)
EXPLORED = (
    Found((0.1, 0.2, 0.5, 0.9), "couch", 0.9),
    Found((0.15, 0.35, 0.35, 0.6), "cat", 0.8),
    Found((0.7, 0.4, 0.85, 0.6), "cup", 0.7),
    Found((0.8, 0.8, 0.9, 0.9), "fork", 0.6),
)
NEAR = Nearest("a thing on a table", 0.5)


class FakeScore:
    """The score of a word or an answer is the sum of what a look gives each part, times how much it counts.

    values: (r,) its features, one number each. attention: (r,).
    """

    def __init__(self, word: str, values: np.ndarray, attention: np.ndarray) -> None:
        self.word, self.grid = word, GRID
        self.features = torch.from_numpy(values.astype(np.float32))[:, None]
        self.attention = torch.from_numpy(attention.astype(np.float32))
        self.cells = torch.arange(len(values))
        self.boxes_xyxy = np.array([[0, 0, 0.5, 1], [0.5, 0, 1, 1]], dtype=np.float32)

    def __call__(self, features: torch.Tensor, present: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        return (features[:, :, 0] * present * self.attention).sum(dim=1) - 1

    def without_names(self) -> float | None:
        return float(self(self.features[None], torch.ones(1, len(self.cells)), torch.zeros(1))) - 1


class FakeLook(Look):
    """Says of a region how many patches it covers; finds every word in the middle; answers what nobody asked."""

    question_kinds = ("is there a …?",)

    def __init__(self, seer: FakeSeer, view: View) -> None:
        super().__init__(seer, view)
        self.seer = seer

    def captions(self, regions: Sequence[Region], how: Any = None, level: str = "object") -> list[Caption]:
        self.seer.before_answer()
        check_level(level, self.seer.levels, self.seer.name)
        self.seer.batches.append(len(regions))
        where = "" if level == "object" else f"{level} of "
        return [
            Caption(f"{where}{np.count_nonzero(grid)} patches", -0.5, similarity=0.5, nearest=(NEAR,))
            for grid in self.weights(regions)
        ]

    def grounded(self, text: str) -> Grounded:
        words = tuple(text.split())
        if not words:
            raise InvalidValue("text", "has no word")
        boxes = np.tile([0.25, 0.25, 0.75, 0.75], (len(words), 1))
        boxes[0] = np.nan
        return Grounded(words, WordBoxes(boxes))

    def narrate(self, most: int = 4) -> Narrative:
        return self.grounded(" ".join(["A", "thing.", *["Another."] * most])).narrative("photo", origin=self.seer.name)

    def answer(self, question: str, region: Region | None = None) -> Answer:
        self.seer.before_answer()
        if not question.split():
            raise InvalidValue("question", "has no word")
        best = "yes" if region is None else "here"
        if question.startswith("why"):
            said = "I cannot know that"
            return Answer(said, 0.7, ((best, 0.7),), np.array([0.75, 0.25]), reason="it asks for a reason")
        return Answer(best, 0.7, ((best, 0.7), ("no", 0.25), ("2", 0.05)), np.array([0.75, 0.25]), ("flurb",))

    def chat(self) -> Conversation:
        return self.seer.conversation()

    def segment(self, region: Region) -> Mask:
        rows, cols = np.indices((60, 80))
        return Mask((rows - 30) ** 2 + (cols - 40) ** 2 < 400)

    def word_score(self, region: Region, text: str, index: int, level: str = "object") -> FakeScore:
        check_level(level, self.seer.levels, self.seer.name)
        words = text.split()
        if index >= len(words):
            raise InvalidValue("word", f"{index} is none of the {len(words)} words")
        values = np.linspace(1, -1, GRID[0] * GRID[1])
        return FakeScore(words[index], values, self.weights([region]).ravel())

    def answer_score(self, question: str, region: Region | None = None, answer: str = "") -> FakeScore:
        return FakeScore(answer or self.answer(question, region).text, np.array([1.0, 0.5]), np.array([0.75, 0.25]))


class FakeSeer:
    """looks: the keys of the photos looked at. batches: the number of regions of every request for captions."""

    name, skills, levels, generation = "fake", ("caption", "ground", "narrate"), ("object",), GREEDY

    def __init__(self) -> None:
        self.looks: list[str] = []
        self.batches: list[int] = []
        self.before_answer: Callable[[], Any] = lambda: None

    def conversation(self) -> Conversation:
        raise NotImplementedError

    def look(self, photo: PhotoLike, image_id: str = "") -> FakeLook:
        read_photo(photo)
        self.looks.append(image_id)
        return self.see(View(Frame.of_grid(*GRID), np.zeros((*GRID, 8)), np.zeros(8)))

    def see(self, view: View, image: None = None, image_id: str = "photo") -> FakeLook:
        return FakeLook(self, view)


class AnsweringSeer(FakeSeer):
    """The same with a part that answers."""

    skills = ("caption", "ground", "narrate", "answer")  # type: ignore[assignment]


class FakeConversation:
    """Counts its turns and remembers what was pointed at. Asked where, it points out a box and a line; asked to cut
    something out, a mask; of a third turn on it forgets the first two."""

    def __init__(self, seer: FakeSeer) -> None:
        self.seer, self.turns = seer, 0
        self.pointed: list[str] = []

    def say(self, text: str, region: Region | None = None) -> Spoken:
        self.seer.before_answer()
        self.turns += 1
        self.pointed += [region.name.partition(" ")[0]] if region is not None else []
        shown: list[Region] = []
        if text.startswith("where"):
            shown += [Box(0.2, 0.3, 0.5, 0.8), Trace([(0.6, 0.2, 0), (0.8, 0.5, 0.5), (0.7, 0.8, 1)])]
        if text.startswith("cut"):
            shown.append(FakeLook.segment(self, Box(0, 0, 1, 1)))  # type: ignore[arg-type]
        said = f"Turn {self.turns}: {text} Pointed at: {', '.join(self.pointed) or 'nothing'}."
        lost = ("box 2: no two corners",) if "oddly" in text else ()
        return Spoken(said, tuple(shown), 2 if self.turns > 2 else 0, lost)


class FakeStream(FakeConversation):
    """The same, word by word."""

    def stream(self, text: str, region: Region | None, hear: Callable[[str], None]) -> Spoken:
        spoken = self.say(text, region)
        first, *words = spoken.text.split(" ")
        hear(first)
        for word in words:
            self.seer.before_answer()
            hear(f" {word}")
        return spoken


class TalkingSeer(FakeSeer):
    """The same with conversations and masks. talks: how many were begun."""

    skills = ("caption", "ground", "narrate", "answer", "segment", "chat")  # type: ignore[assignment]
    kind: type[FakeConversation] = FakeStream

    def __init__(self) -> None:
        super().__init__()
        self.talks = 0

    def conversation(self) -> Conversation:
        self.talks += 1
        return self.kind(self)


class ScenicSeer(FakeSeer):
    """The same with captions above objects."""

    skills = ("caption", "ground", "narrate", "scene")  # type: ignore[assignment]
    levels = ("object", "scene", "action")  # type: ignore[assignment]


class ExploredLook(FakeLook):
    """Calls what was found by its name, and the cat black; it is not sure of the fork."""

    def captions(self, regions: Sequence[Region], how: Any = None, level: str = "object") -> list[Caption]:
        self.seer.batches.append(len(regions))
        names = {Box(*one.box_xyxy): one.name for one in self.view.found}
        texts = [names.get(region, "") for region in regions]  # type: ignore[call-overload]
        says = {"": "a cat on a couch", "cat": "a black cat"}
        return [
            Caption(says.get(text, f"a {text}"), -0.5, region, sure=text != "fork")
            for text, region in zip(texts, regions, strict=True)
        ]


class ExploredSeer(FakeSeer):
    """Sees a couch with a cat on it, left of a cup, and perhaps a fork."""

    def see(self, view: View, image: None = None, image_id: str = "photo") -> ExploredLook:
        attention = np.ones(GRID)
        attention[1] = 3
        return ExploredLook(self, View(view.frame, view.patches, view.whole, attention, EXPLORED))


class FakeRecogniser:
    """Writes what it is told to. hold: it goes on listening until this is set. stopped: whether it was stopped."""

    name, languages = "fake-ear", ("de", "en")

    def __init__(self, text: str = "a red wall", language: str = "en") -> None:
        self.text, self.language = text, language
        self.hold, self.stopped = threading.Event(), threading.Event()
        self.hold.set()
        self.asked: list[tuple[float, str | None]] = []

    def transcribe(self, sound: Sound, language: str | None, progress: Progress) -> Transcript:
        self.asked.append((sound.duration_s, language))
        try:
            progress("listening", 0, 10)
            while not self.hold.wait(0.01):
                progress("writing", 3, 10)
        except Exception:
            self.stopped.set()
            raise
        progress("writing", 10, 10)
        if not self.text:
            raise InvalidValue("the recording", "is silent", "check that the microphone is on and not muted")
        return Transcript(self.text, language or self.language)


@pytest.fixture
def seer() -> FakeSeer:
    return FakeSeer()


@pytest.fixture
def open_studio(tmp_path: Path, seer: FakeSeer) -> Iterator[Callable[..., TestClient]]:
    """Opens a Studio: open_studio(limits, token=…, …) gives a client. All are closed in the end.

    folder: of the Studio, below the test's own. model: instead of the quick one; "load" to load one by its name.
    """
    opened: list[TestClient] = []

    def start(
        limits: Limits | None = None,
        model: Any = None,
        recogniser: Any = None,
        folder: str = "studio",
        **settings: Any,
    ) -> TestClient:
        chosen = StudioSettings(tmp_path / folder, limits=limits or Limits(), **settings)
        app = create_app(chosen, seer=None if model == "load" else model or seer, recogniser=recogniser)
        client = TestClient(app, HOME, raise_server_exceptions=False)
        opened.append(client.__enter__())
        return client

    yield start
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def client(open_studio: Callable[..., TestClient]) -> TestClient:
    return open_studio()


@pytest.fixture
def photo(client: TestClient) -> dict[str, Any]:
    """A photo that the Studio has."""
    return upload(client, png())


def picture(width: int = 32, height: int = 24) -> Image.Image:
    """Left half red, right half blue."""
    image = Image.new("RGB", (width, height), (200, 30, 30))
    image.paste((30, 30, 200), (width // 2, 0, width, height))
    return image


def encoded(image: Image.Image, kind: str = "PNG", **how: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **how)
    return file.getvalue()


HEIC = b"\0\0\0\x18ftypheic" + bytes(40)
"""As much of a phone's photo as tells what it is."""


def png(width: int = 32, height: int = 24) -> bytes:
    return encoded(picture(width, height))


def wav(seconds: float = 0.1, rate: int = 16_000) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes(struct.pack("<h", 100) * int(seconds * rate))
    return file.getvalue()


def upload(client: TestClient, data: bytes, name: str = "kitchen.png") -> dict[str, Any]:
    reply = client.post("/api/photos", content=data, headers={"Content-Type": "image/png", "X-File-Name": name})
    assert reply.status_code == 201, reply.text
    return dict(reply.json())


def captions(client: TestClient, photo_id: str, *regions: dict[str, Any], **more: Any) -> Any:
    """The reply to a request for captions."""
    return client.post(f"/api/photos/{photo_id}/captions", json={"regions": list(regions), **more})


def narrative(photo_id: str, **changes: Any) -> dict[str, Any]:
    """What the page sends after a recording."""
    return {
        "photo": photo_id,
        "annotator": "ada",
        "text": "a red wall",
        "words": [],
        "trace": {"points": [[0.1, 0.1, 0.0], [0.2, 0.3, 0.5], [0.7, 0.6, 1.2]], "starts": [0, 2]},
        "keys": [{"t": 0.2, "text_length": 1}, {"t": 0.9, "text_length": 6}, {"t": 1.5, "text_length": 10}],
        **changes,
    }


def refusal(reply: Any, status: int) -> dict[str, str]:
    """The error of a reply, in the form that every error has."""
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/json"
    body = json.loads(reply.text)
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message", "hint"}
    assert "Traceback" not in reply.text
    assert body["error"]["message"]
    return dict(body["error"])


class Gate:
    """Holds the model's thread until it is opened."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        assert self.opened.wait(20)


WHOLE = {"kind": "whole"}
BOX = {"kind": "box", "xyxy": list(Box(0.1, 0.1, 0.4, 0.4).xyxy)}
