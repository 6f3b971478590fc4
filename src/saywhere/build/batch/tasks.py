"""What is done with each photo, and the columns that it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from saywhere.core.errors import InvalidValue

if TYPE_CHECKING:
    from saywhere.core import Narrative
    from saywhere.models.face import Look

_BOX = pa.list_(pa.float32(), 4)
_PLACED = pa.list_(pa.struct([("text", pa.string()), ("box", _BOX)]))
_TIMED = pa.list_(pa.struct([("text", pa.string()), ("start_s", pa.float64()), ("end_s", pa.float64()), ("box", _BOX)]))
_THINGS = pa.list_(pa.struct([("name", pa.string()), ("score", pa.float32()), ("box", _BOX)]))


@dataclass(frozen=True, slots=True)
class BatchTask:
    """skill: that the model must have; empty if any will do. columns: of the results. row: a look and the text that
    came with the photo → the values of the columns."""

    skill: str
    columns: tuple[tuple[str, pa.DataType], ...]
    row: Callable[[Look, str], dict[str, Any]]

    @property
    def schema(self) -> pa.Schema:
        """key and error, which is null for a photo that went well, then the task's own columns."""
        return pa.schema([("key", pa.string()), ("error", pa.string()), *self.columns])


def _look(look: Look, text: str) -> dict[str, Any]:  # noqa: ARG001 - of every task
    things = [{"name": one.name, "score": one.score, "box": one.box_xyxy} for one in look.view.found]
    return {"things": things, "vector": look.vector()}


def _caption(look: Look, text: str) -> dict[str, Any]:  # noqa: ARG001 - of every task
    caption = look.caption()
    return {"text": caption.text, "score": caption.score, "sure": caption.sure}


def _narrate(look: Look, text: str) -> dict[str, Any]:  # noqa: ARG001 - of every task
    narrative = look.narrate()
    return {"text": narrative.caption, "words": _timed(narrative)}


def _ground(look: Look, text: str) -> dict[str, Any]:
    if not text.split():
        raise InvalidValue("photo", "comes with no text to find in it")
    grounded = look.grounded(text)
    boxes = grounded.boxes.boxes_xyxy.tolist()
    words = [{"text": word, "box": _box(box)} for word, box in zip(grounded.words, boxes, strict=True)]
    return {"text": text, "words": words}


def _timed(narrative: Narrative) -> list[dict[str, Any]]:
    boxes = narrative.word_boxes().boxes_xyxy.tolist()
    return [
        {"text": word.text, "start_s": word.start_s, "end_s": word.end_s, "box": _box(box)}
        for word, box in zip(narrative.words, boxes, strict=True)
    ]


def _box(box: list[float]) -> list[float] | None:
    """None where nothing tells the place: its numbers are none."""
    return box if box[0] == box[0] else None


TASKS = {
    "look": BatchTask("", (("things", _THINGS), ("vector", pa.list_(pa.float32()))), _look),
    "caption": BatchTask("caption", (("text", pa.string()), ("score", pa.float64()), ("sure", pa.bool_())), _caption),
    "narrate": BatchTask("narrate", (("text", pa.string()), ("words", _TIMED)), _narrate),
    "ground": BatchTask("ground", (("text", pa.string()), ("words", _PLACED)), _ground),
}
"""By name."""
