"""Small documents of every JSON format, made up, for the tests that all formats share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saywhere.core.errors import SaywhereError
from saywhere.formats.record import InvalidRecord
from saywhere.formats.registry import FORMATS


@dataclass(frozen=True)
class Form:
    """wrap: items (JSON text) → document. items: four good ones, as JSON text. where: of item k in an InvalidRecord."""

    name: str
    wrap: Callable[[list[bytes]], bytes]
    items: list[bytes]
    where: Callable[[int], tuple[int, str]]

    @property
    def by_lines(self) -> bool:
        return self.where(0)[0] == 1

    def read(self, path: Path) -> Iterator[Any]:
        return FORMATS[self.name].module.read(path)


def _list(items: list[bytes]) -> bytes:
    return b"[" + b", ".join(items) + b"]"


def _member(name: str, **others: object) -> Callable[[list[bytes]], bytes]:
    rest = json.dumps(others).encode()
    return lambda items: rest[:-1] + (b", " if others else b"") + f'"{name}": '.encode() + _list(items) + b"}"


def _lines(items: list[bytes]) -> bytes:
    return b"".join(item + b"\n" for item in items)


def _each(make: Callable[[int], object]) -> list[bytes]:
    return [json.dumps(make(i)).encode() for i in range(4)]


IMAGES = [{"id": i, "file_name": f"{i}.jpg", "width": 40, "height": 30} for i in range(4)]
CATEGORIES = [{"supercategory": "animal", "id": 17, "name": "cat"}]


def _question(i: int) -> dict[str, object]:
    return {"question_id": i, "image_id": 10 + i, "question": f"How many {i}?"}


def _instance(i: int) -> dict[str, object]:
    outline: object = [[1, 1, 9, 1, 9.5, 12]] if i % 2 else {"size": [30, 40], "counts": [i, 100, 1100 - i]}
    box = [1, 1, 8 + i, 11]
    return {"id": i, "image_id": i, "category_id": 17, "bbox": box, "area": 40.5, "iscrowd": 0, "segmentation": outline}


def _ref(i: int) -> dict[str, object]:
    sentences = [{"sent_id": 2 * i + k, "sent": f"cat {k}", "raw": f"Cat {k}!"} for k in range(2)]
    return {"ref_id": i, "ann_id": i, "image_id": i, "category_id": 17, "split": "val", "sentences": sentences}


def _region(i: int) -> dict[str, object]:
    return {"region_id": i, "image_id": 5, "x": i, "y": 2, "width": 9, "height": 8, "phrase": f"part {i}"}


def _hl(i: int) -> dict[str, object]:
    return {"file_name": f"{i}.jpg", "captions": {"scene": ["a", f"b{i}"]}, "purity": {"scene": [0.5, -1]}}


_LISTED = {
    "coco-results": (_list, lambda i: {"image_id": i, "caption": f"a cat {i}"}, "[{}]"),
    "refcoco": (_list, _ref, "[{}]"),
    "vqa": (_member("questions", info={"year": 2017}), _question, "questions[{}]"),
    "aokvqa": (_list, lambda i: _question(i) | {"choices": ["a", "b"], "correct_choice_idx": 1}, "[{}]"),
    "visual-genome": (lambda items: _list([_member("regions", id=5)(items)]), _region, "[0].regions[{}]"),
    "coco-captions": (
        _member("annotations", info={}, images=IMAGES),
        lambda i: {"id": i, "image_id": i, "caption": f'so called "cat" {i} — é'},
        "annotations[{}]",
    ),
    "coco-instances": (_member("annotations", images=IMAGES, categories=CATEGORIES), _instance, "annotations[{}]"),
    "salicon": (
        _member("annotations", images=IMAGES),
        lambda i: {"image_id": i, "worker_id": 3, "id": i, "fixations": [[1, 1], [30, 40 - i]]},
        "annotations[{}]",
    ),
}
FORMS = [
    *(
        Form(name, wrap, _each(make), lambda k, where=where: (0, where.format(k)))
        for name, (wrap, make, where) in _LISTED.items()
    ),
    Form("hl", _lines, _each(_hl), lambda k: (k + 1, "")),
    Form(
        "pope",
        _lines,
        _each(lambda i: {"question_id": i, "image": "1.jpg", "text": "Is there a cat?", "label": "no"}),
        lambda k: (k + 1, ""),
    ),
    Form(
        "vsr",
        _lines,
        _each(lambda i: {"image": f"{i}.jpg", "caption": "The cat is red.", "label": 1, "relation": "is"}),
        lambda k: (k + 1, ""),
    ),
    Form(
        "referring-results",
        _lines,
        _each(lambda i: {"expression_id": i, "box_xyxy": [0.1, 0.2, 0.3, 0.4]}),
        lambda k: (k + 1, ""),
    ),
    Form(
        "entities",
        lambda items: b'{"7": {' + b", ".join(b'"caption %d": %s' % pair for pair in enumerate(items)) + b"}}",
        _each(lambda i: [[0, 1, 2.5 + i, 3]]),
        lambda k: (0, f'["7"]["caption {k}"]'),
    ),
]


def outcome(form: Form, path: Path, content: bytes) -> tuple[list[str], list[InvalidRecord], SaywhereError | None]:
    """What reading this content gives: values as text, bad records, and the error that ended it, if one did."""
    path.write_bytes(content)
    values: list[str] = []
    bad: list[InvalidRecord] = []
    try:
        for value in form.read(path):
            if isinstance(value, InvalidRecord):
                bad.append(value)
            else:
                values.append(repr(value))
    except SaywhereError as error:
        return values, bad, error
    return values, bad, None
