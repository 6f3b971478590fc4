"""RefCOCO, RefCOCO+ (Yu et al., 2016), RefCOCOg (Mao et al., 2016): phrases that pick out one object of a COCO photo.

    refs            [{"ref_id", "ann_id", "image_id", "category_id", "split", "file_name",
                    "sentences": [{"sent_id", "sent", "raw", "tokens"}]}]
    instances.json  COCO instances, in which ann_id is an annotation

The official refs are Python pickles. Loading a pickle can run any code, so they are never loaded here; the same list
saved as JSON is read. `read(refs)` gives the phrases alone, `read(refs, instances)` also each object's box and mask.

One value for each ref, in the file's order. Bad records are refs without sentences, sentences without words and, with
instances, objects that are not there, are bad themselves, or belong to another image.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.formats import coco_instances
from saywhere.formats._documents import Decoded, Id, built, decoded, document, item_keys
from saywhere.formats.coco_instances import Instance
from saywhere.formats.files import read_bytes
from saywhere.formats.record import InvalidRecord

_PICKLE_NAMES = (".p", ".pkl", ".pickle")
_TO_JSON = (
    "if you trust the file, convert it once: "
    "python -c \"import json, pickle, sys; json.dump(pickle.load(open(sys.argv[1], 'rb')), open(sys.argv[2], 'w'))\" "
    "'refs(unc).p' refs.json"
)


@dataclass(frozen=True, slots=True)
class Expression:
    """A phrase that picks out one object. text: cleaned as the data set does. raw: as it was typed, if known."""

    sentence_id: int | str
    text: str
    raw: str = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """One object and the phrases that pick it out. split: "train", "val", "testA" … instance: the object, if read."""

    reference_id: int | str
    annotation_id: int | str
    image_id: int | str
    category_id: int | str
    split: str
    expressions: tuple[Expression, ...]
    file_name: str = ""
    instance: Instance | None = None

    def __post_init__(self) -> None:
        if not self.expressions:
            raise InvalidValue(f"ref {self.reference_id}", "has no sentences")
        for expression in self.expressions:
            if not expression.text.strip():
                raise InvalidValue(f"sentence {expression.sentence_id}", "has no words")
        if self.instance is not None and self.instance.image_id != self.image_id:
            raise InvalidValue(
                f"ref {self.reference_id}", f"is in image {self.image_id}, its object in {self.instance.image_id}"
            )


class _Sentence(msgspec.Struct, frozen=True, gc=False):
    sent_id: Id
    sent: str = ""
    raw: str = ""


class _Ref(msgspec.Struct, frozen=True, gc=False):
    ref_id: Id
    ann_id: Id
    image_id: Id
    category_id: Id
    split: str
    sentences: list[_Sentence]
    file_name: str = ""


_REF = msgspec.json.Decoder(_Ref)


def sniff(path: Path, head: bytes) -> bool:
    """Whether the file is such a list; also for the official pickles, so that `read` can say what to do."""
    return _is_pickle(path, head) or item_keys(head) >= {"ref_id", "sentences"}


def read(path: str | Path, instances: str | Path | None = None) -> Iterator[Reference | InvalidRecord]:
    """One value for each ref. instances: the file with their objects."""
    text = read_bytes(path)
    if _is_pickle(Path(path), text[:64]):
        raise InvalidFile(path, "is a Python pickle, which could run any code and is never loaded", _TO_JSON)
    root = document(path, text)
    if root.kind != "list":
        raise InvalidFile(path, "should be a list of refs, not an object")
    refs = list(decoded(root.items(), _REF))
    objects: dict[int | str, Instance] | None = None
    if instances is not None:
        wanted = {item.value.ann_id for item in refs if isinstance(item, Decoded)}
        objects = {
            value.annotation_id: value
            for value in coco_instances.read(instances)
            if isinstance(value, Instance) and value.annotation_id in wanted
        }
    yield from built(refs, lambda ref: _reference(ref, objects))


def _is_pickle(path: Path, head: bytes) -> bool:
    """By the first byte of pickles of protocol 2 and later; older ones are plain text, but not JSON."""
    named_so = path.suffix in _PICKLE_NAMES and head.lstrip()[:1] not in (b"[", b"{")
    return head[:1] == b"\x80" or (named_so and not path.is_dir())


def _reference(ref: _Ref, objects: dict[int | str, Instance] | None) -> Reference:
    instance = None if objects is None else objects.get(ref.ann_id)
    if objects is not None and instance is None:
        raise InvalidValue(f"object {ref.ann_id}", "is not in the file of instances, or bad there")
    return Reference(
        ref.ref_id,
        ref.ann_id,
        ref.image_id,
        ref.category_id,
        ref.split,
        tuple(Expression(sentence.sent_id, sentence.sent or sentence.raw, sentence.raw) for sentence in ref.sentences),
        ref.file_name,
        instance,
    )
