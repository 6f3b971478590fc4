"""The API's messages. Positions are fractions of the photo, x right, y down; times are seconds; boxes are xyxy."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from saywhere.core import Box, BoxSet, Point, Polygon, Region, Trace, WholeImage
from saywhere.core.narrative import HUMAN, LONGEST_TAG
from saywhere.studio.photos import ID_PATTERN

NARRATIVE_PATTERN = "^[0-9a-f]{16,32}$"

Fraction = Annotated[float, Field(ge=-10, le=10)]
Seconds = Annotated[float, Field(ge=0, le=86_400)]
PhotoId = Annotated[str, Field(pattern=ID_PATTERN)]
Level = Annotated[str, Field(min_length=1, max_length=100)]
BoxXyxy = tuple[Fraction, Fraction, Fraction, Fraction]
TracePoint = tuple[Fraction, Fraction, Seconds]
Grid = Annotated[list[int], Field(min_length=2, max_length=2)]
PointXyt = Annotated[list[float], Field(min_length=3, max_length=3)]
PlaceXyxy = Annotated[list[float], Field(min_length=4, max_length=4)]


class Message(BaseModel):
    """What a client sends: nothing unknown, no NaN, no infinity."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class WholeRegion(Message):
    """All of the photo."""

    kind: Literal["whole"]

    def region(self) -> Region:
        return WholeImage()

    def __len__(self) -> int:
        return 1


class BoxRegion(Message):
    """A rectangle, x1 < x2 and y1 < y2."""

    kind: Literal["box"]
    xyxy: BoxXyxy

    def region(self) -> Region:
        return Box(*self.xyxy)

    def __len__(self) -> int:
        return 1


class BoxesRegion(Message):
    """Several rectangles meant together."""

    kind: Literal["boxes"]
    boxes: Annotated[list[BoxXyxy], Field(min_length=1)]

    def region(self) -> Region:
        return BoxSet(tuple(Box(*box) for box in self.boxes))

    def __len__(self) -> int:
        return len(self.boxes)


class PointRegion(Message):
    """One place."""

    kind: Literal["point"]
    x: Fraction
    y: Fraction

    def region(self) -> Region:
        return Point(self.x, self.y)

    def __len__(self) -> int:
        return 1


class PolygonRegion(Message):
    """An outline, such as a lasso; closed by itself, and it may cross itself."""

    kind: Literal["polygon"]
    points: Annotated[list[tuple[Fraction, Fraction]], Field(min_length=3)]

    def region(self) -> Region:
        return Polygon(self.points)

    def __len__(self) -> int:
        return len(self.points)


class TraceRegion(Message):
    """Where a pointer went. starts: the index of the first point of every stroke."""

    kind: Literal["trace"]
    points: Annotated[list[TracePoint], Field(min_length=1)]
    starts: list[int] = [0]

    def region(self) -> Region:
        return Trace(self.points, self.starts)

    def __len__(self) -> int:
        return len(self.points)


AnyRegion = Annotated[
    WholeRegion | BoxRegion | BoxesRegion | PointRegion | PolygonRegion | TraceRegion, Field(discriminator="kind")
]


class CaptionsAsked(Message):
    """provenance: also give the patches' weights. level: one of the model's: "object" for what is there, or one above
    it, such as "scene" for where it is."""

    regions: Annotated[list[AnyRegion], Field(min_length=1)]
    provenance: bool = False
    level: Level = "object"


class TextAsked(Message):
    text: Annotated[str, Field(min_length=1, max_length=20_000)]


class TellingAsked(Message):
    """most: how many things to tell after the whole."""

    most: Annotated[int, Field(ge=0, le=20)] = 4


class LooksAsked(Message):
    photos: Annotated[list[PhotoId], Field(min_length=1)]


class WordSaid(Message):
    """confidence: how likely its start is right within a quarter of a second, if that is known."""

    text: Annotated[str, Field(min_length=1, max_length=1_000)]
    start_s: Seconds
    end_s: Seconds
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None


class TraceDrawn(Message):
    points: list[TracePoint] = []
    starts: list[int] = []


class KeyPressed(Message):
    """How long the typed text was at a time."""

    t: Seconds
    text_length: Annotated[int, Field(ge=0, le=20_000)]


class ToldSent(Message):
    """What somebody told, as a client sends it. id: may be chosen by the client, so that sending again makes no second
    one. typed: the text that the keys wrote, before any correction. source: the file that it was taken from. language:
    of the text, as a tag of BCP 47, such as "en" or "pt-BR"; null if nobody knows.

    audio and changed are the server's to say: what is sent of them is not looked at. created: now, if it is not sent.
    version: the one that this was made from; what somebody else changed meanwhile is not overwritten then.
    """

    id: Annotated[str, Field(pattern=NARRATIVE_PATTERN)] | None = None
    annotator: Annotated[str, Field(max_length=200)] = ""
    text: Annotated[str, Field(max_length=20_000)] = ""
    words: list[WordSaid] = []
    trace: TraceDrawn = TraceDrawn()
    keys: list[KeyPressed] = []
    typed: Annotated[str, Field(max_length=20_000)] | None = None
    audio: bool = False
    origin: Annotated[str, Field(min_length=1, max_length=200)] = HUMAN
    created: AwareDatetime | None = None
    timed_by: Literal["audio", "keys", "even", "hand", "file"] | None = None
    boxes: list[BoxXyxy | None] | None = None
    source: Annotated[str, Field(max_length=200)] | None = None
    language: Annotated[str, Field(max_length=LONGEST_TAG)] | None = None
    version: Annotated[int, Field(ge=1)] | None = None
    changed: Annotated[str, Field(max_length=200)] | None = None

    def record(self) -> dict[str, Any]:
        """As the store takes it; whether it makes sense is for the store to say."""
        return self.model_dump(mode="json", exclude={"audio", "changed"}, exclude_none=True)


class NarrativeSent(ToldSent):
    """A narrative of a photo."""

    photo: PhotoId


class Reply(BaseModel):
    """What the server sends."""


class ErrorFacts(Reply):
    code: str
    message: str
    hint: str


class ErrorReply(Reply):
    error: ErrorFacts


class ModelFacts(Reply):
    """name; ready: whether it is loaded; error: why it could not be; skills by name: {has} or {has, why, how}; levels
    that captions can be asked at, "object" first; none while it is not there."""

    name: str
    ready: bool
    error: str
    skills: dict[str, dict[str, str | bool]]
    levels: list[str]


class TranscriptionFacts(Reply):
    """Whether recordings can be written down; if not, why and how to get it. aligned: languages with times of words."""

    has: bool
    why: str
    how: str
    name: str
    languages: list[str]
    aligned: list[str]


class StatusReply(Reply):
    version: str
    model: ModelFacts
    videos: int
    transcription: TranscriptionFacts
    limits: dict[str, int | float]


class PhotoReply(Reply):
    id: str
    width: int
    height: int
    name: str
    url: str
    thumbnail: str


class PhotosReply(Reply):
    photos: list[PhotoReply]


class LookReply(Reply):
    id: str
    grid: Grid
    seconds: float
    cached: bool


class NearSentence(Reply):
    sentence: str
    cosine: float


class CaptionReply(Reply):
    """text; sure: whether to rely on it; similarity: the cosine with the nearest sentence that the model knows, null if
    it knows none; score: the mean log-probability of its words; weights: (rows, columns) how much each patch counted,
    if asked for."""

    text: str
    sure: bool
    similarity: float | None
    score: float
    nearest: list[NearSentence]
    weights: list[list[float]] | None = None


class CaptionsReply(Reply):
    """level: the one that was asked for."""

    captions: list[CaptionReply]
    level: str


class WordReply(Reply):
    """confidence: how likely its start is right within a quarter of a second, if the voice told it."""

    text: str
    start_s: float
    end_s: float
    confidence: float | None = None


class TraceReply(Reply):
    points: list[PointXyt]
    starts: list[int]


class KeyReply(Reply):
    t: float
    text_length: int


class ToldReply(Reply):
    """id: null if it is not kept. boxes: one for each word, null where it has no place; absent where none are known.
    version: counts from 1; changed: when this version was made, absent where it is not kept. language: of the text,
    null if nobody knows."""

    id: str | None
    annotator: str
    text: str
    words: list[WordReply]
    trace: TraceReply
    keys: list[KeyReply]
    typed: str | None = None
    audio: bool
    origin: str
    created: str
    timed_by: str | None
    boxes: list[PlaceXyxy | None] | None = None
    source: str | None = None
    language: str | None = None
    version: int = 1
    changed: str | None = None


class NarrativeReply(ToldReply):
    """A narrative of a photo."""

    photo: str


class NarrativesReply(Reply):
    narratives: list[NarrativeReply]


class JobStarted(Reply):
    job: str


class JobReply(Reply):
    id: str
    kind: str
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    done: int
    total: int
    result: dict[str, Any] | None
    error: str | None
