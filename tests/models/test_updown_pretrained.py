"""UpDn networks in folders: what is saved comes back, and damage is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from saywhere.core import InvalidFile, InvalidValue
from saywhere.language.vocabulary import BEGIN_ID, Vocabulary
from saywhere.models.updown import AnswerVocabulary, UpDnCaptioner, UpDnVqa
from tests.models import updown_small as small

WORDS = Vocabulary("words", ("<unk>", *(f"w{i}" for i in range(1, small.WORDS))))
ANSWERS = AnswerVocabulary(tuple(f"answer {i}" for i in range(small.ANSWERS)))


def test_an_answering_network_comes_back_whole(tmp_path: Path) -> None:
    model = small.vqa(use_boxes=True).attach(WORDS, ANSWERS)
    model.save_pretrained(tmp_path)
    found = UpDnVqa.from_pretrained(tmp_path)
    assert (found.config, found.vocabulary, found.answers) == (model.config, WORDS, ANSWERS)
    assert not found.training
    regions, present, boxes = small.scene()
    wanted = model(regions, present, small.questions(), boxes=boxes).logits
    assert torch.equal(found(regions, present, small.questions(), boxes=boxes).logits, wanted)


def test_a_captioner_comes_back_whole(tmp_path: Path) -> None:
    model = small.captioner().attach(WORDS)
    model.save_pretrained(tmp_path)
    found = UpDnCaptioner.from_pretrained(tmp_path)
    assert (found.config, found.vocabulary) == (model.config, WORDS)
    regions, present, _ = small.scene()
    words = torch.full((3, 2), BEGIN_ID)
    assert torch.equal(found(regions, present, words).logits, model(regions, present, words).logits)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "vocabulary.json", "answers.json"])
@pytest.mark.parametrize("damage", ["missing", "torn", "changed"])
def test_a_damaged_file_is_refused(tmp_path: Path, name: str, damage: str) -> None:
    small.vqa().attach(WORDS, ANSWERS).save_pretrained(tmp_path)
    path = tmp_path / name
    content = path.read_bytes()
    path.unlink()
    if damage == "torn":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "changed":
        path.write_bytes(content[:-2] + b"~" + content[-1:])
    with pytest.raises(InvalidFile, match=name):
        UpDnVqa.from_pretrained(tmp_path)


def test_a_folder_of_the_other_network_or_with_another_shape_is_refused(tmp_path: Path) -> None:
    small.captioner().attach(WORDS).save_pretrained(tmp_path)
    with pytest.raises(InvalidFile, match="'updown-caption' format 1; this reads 'updown-vqa'"):
        UpDnVqa.from_pretrained(tmp_path)
    path = tmp_path / "config.json"
    described = json.loads(path.read_text())
    for changes, reason in (({"width": 9}, "does not hold the parameters"), ({"width": 0}, "width"), ({"w": 1}, "'w'")):
        path.write_text(json.dumps(described | {"config": described["config"] | changes}))
        with pytest.raises(InvalidFile, match=reason):
            UpDnCaptioner.from_pretrained(tmp_path)


def test_a_network_that_does_not_know_its_words_is_not_saved(tmp_path: Path) -> None:
    for model in (small.vqa(), small.captioner()):
        with pytest.raises(InvalidValue, match="attach"):
            model.save_pretrained(tmp_path)
    assert list(tmp_path.iterdir()) == []
