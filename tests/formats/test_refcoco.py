from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from saywhere.core.errors import InvalidFile
from saywhere.formats import coco_instances, refcoco
from saywhere.formats.coco_instances import Instance
from saywhere.formats.record import InvalidRecord
from saywhere.formats.refcoco import Expression, Reference

REF = {
    "ref_id": 3,
    "ann_id": 2,
    "image_id": 1,
    "category_id": 17,
    "split": "testA",
    "file_name": "COCO_train2014_1_2.jpg",
    "sent_ids": [8, 9],
    "sentences": [
        {"sent_id": 8, "sent": "left cat", "raw": "Left cat!", "tokens": ["left", "cat"]},
        {"sent_id": 9, "raw": "the cat"},
    ],
}
CAT = Instance(1, 2, "cat", 17, 40, 30, (4.0, 6.0, 20.0, 12.0), 100.0)


def write(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content))
    return path


def test_a_ref_has_its_phrases_and_with_instances_its_object(tmp_path: Path) -> None:
    path = write(tmp_path / "refs.json", [REF])
    expressions = (Expression(8, "left cat", "Left cat!"), Expression(9, "the cat", "the cat"))
    alone = Reference(3, 2, 1, 17, "testA", expressions, "COCO_train2014_1_2.jpg")
    assert list(refcoco.read(path)) == [alone]
    coco_instances.write(tmp_path / "instances.json", [CAT])
    (joined,) = refcoco.read(path, tmp_path / "instances.json")
    assert isinstance(joined, Reference)
    assert joined.instance == CAT
    assert joined.expressions == expressions


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sentences": []}, "no sentences"),
        ({"sentences": [{"sent_id": 1}]}, "no words"),
        ({"sentences": [{"sent": "a"}]}, "sent_id"),
        ({"ann_id": 5}, "object 5 is not in the file of instances"),
        ({"image_id": 7}, "its object in 1"),
        ({"split": 3}, "split"),
    ],
)
def test_a_bad_ref_is_a_bad_record_with_its_reason(change: dict[str, object], words: str, tmp_path: Path) -> None:
    coco_instances.write(tmp_path / "instances.json", [CAT])
    path = write(tmp_path / "refs.json", [REF | change, REF])
    bad, good = refcoco.read(path, tmp_path / "instances.json")
    assert isinstance(bad, InvalidRecord)
    assert bad.where.startswith("[0]")
    assert words in f"{bad.where} {bad.reason}"
    assert isinstance(good, Reference)


class _Trap:
    """Unpickling this makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_refused_with_a_way_to_convert_it_and_never_loaded(protocol: int, tmp_path: Path) -> None:
    path = tmp_path / "refs(unc).p"
    path.write_bytes(pickle.dumps([REF, _Trap(tmp_path / "sprung")], protocol=protocol))
    assert refcoco.sniff(path, path.read_bytes())
    with pytest.raises(InvalidFile, match=r"is a Python pickle.*json\.dump"):
        list(refcoco.read(path))
    assert not (tmp_path / "sprung").exists()


def test_json_is_read_whatever_its_name_and_an_object_is_refused(tmp_path: Path) -> None:
    assert len(list(refcoco.read(write(tmp_path / "refs.p", [REF])))) == 1
    with pytest.raises(InvalidFile, match="a list of refs"):
        list(refcoco.read(write(tmp_path / "refs.json", {"refs": [REF]})))
