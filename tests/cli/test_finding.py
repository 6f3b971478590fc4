"""`saywhere find`: expressions of a file or a store, by a model or a guess; and that a stopped run goes on."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from saywhere import loading
from saywhere.build.coco import FIELDS, KIND
from saywhere.store import StoreWriter
from tests.cli.conftest import Ran
from tests.models.patchioner_seeing import LEFT, TOP_RIGHT, photo
from tests.models.test_seer_segment import cutting

Run = Callable[..., Ran]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Any:
    own, _ = cutting()
    monkeypatch.setattr(loading, "load", lambda name: own)
    monkeypatch.setattr(loading, "needed_assets", lambda name, *, texts: ())
    monkeypatch.setattr(loading, "needed_for_masks", lambda name: ())
    return own


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Three photos of a cat, of which nothing learnt from the last two; one of those is broken."""
    file = io.BytesIO()
    photo().save(file, "PNG")
    said = [{"split": "val", "class": 15, "box_xyxy": LEFT, "expression": text} for text in ("a cat", "a unicorn")]
    with StoreWriter(tmp_path / "coco", KIND, FIELDS, {}) as writer:
        for number, split in enumerate(("train", "validation", "validation")):
            pixels = b"no picture" if number == 2 else file.getvalue()
            writer.add(f"{number:012}", jpeg=pixels, boxes_xyxy=[LEFT], classes=[15], referring=said, split=split)
    return tmp_path / "coco"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_held_out_photos_of_a_store_are_looked_at_once_and_what_is_not_there_has_no_box(
    saywhere: Run, model: Any, store: Path, tmp_path: Path
) -> None:
    out = tmp_path / "found.jsonl"
    ran = saywhere("find", store, "-o", out, "--masks")
    assert ran.code == 1
    assert "000000000002" in ran.err
    assert "2 of 4 expressions looked for" in ran.out
    cat, unicorn = lines(out)
    assert (cat["expression_id"], cat["box_xyxy"], cat["by"]) == ("000000000001#0", list(LEFT), model.name)
    assert cat["mask"] == {"size": [40, 40], "counts": [0, 800, 800]}
    assert (unicorn["expression_id"], unicorn["box_xyxy"]) == ("000000000001#1", None)
    looks = model.eyes.encoder.looks
    assert saywhere("find", store, "-o", out, "--masks", "--most", 1).code == 0
    assert model.eyes.encoder.looks == looks
    ran = saywhere("score", "referring", out, store, "--partial")
    assert ran.code == 0, ran.err
    assert "P@0.5     0.5000" in ran.out


@pytest.mark.parametrize(
    ("guess", "box"), [("centre", (0.25, 0.25, 0.75, 0.75)), ("whole", (0, 0, 1, 1)), ("largest", TOP_RIGHT)]
)
def test_guesses_find_without_a_model(
    saywhere: Run, model: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, guess: str, box: tuple[float, ...]
) -> None:
    from saywhere.vision.view import Found

    look = model.look(photo())
    monkeypatch.setattr(
        type(model), "look", lambda _self, _photo: model.see(look.view.with_found([Found(TOP_RIGHT, "cat", 0.9)]))
    )
    truth = tmp_path / "said.tsv"
    truth.write_text("val\t7\t15\t0.0\t0.0\t0.5\t1.0\tthe cat\n")
    (tmp_path / "photos").mkdir()
    photo().save(tmp_path / "photos" / "COCO_train2014_000000000007.png")
    out = tmp_path / "found.jsonl"
    ran = saywhere("find", truth, "--photos", tmp_path / "photos", "-o", out, "--guess", guess)
    assert ran.code == 0, ran.err
    assert lines(out) == [{"expression_id": "1", "box_xyxy": list(box), "mask": None, "by": guess}]


def test_what_cannot_be_done_is_refused(saywhere: Run, model: Any, store: Path, tmp_path: Path) -> None:
    out = tmp_path / "found.jsonl"
    assert "Did you mean" in saywhere("find", store, "-o", out, "--guess", "center").err
    assert "cuts nothing out" in saywhere("find", store, "-o", out, "--guess", "whole", "--masks").err
    truth = tmp_path / "said.tsv"
    truth.write_text("val\t7\t15\t0.0\t0.0\t0.5\t1.0\tthe cat\n")
    assert "--photos" in saywhere("find", truth, "-o", out).err
    out.write_text('{"expression_id": 1, "box_xyxy": null, "by": "somebody"}\n')
    assert f"holds what somebody found, not {model.name}" in " ".join(saywhere("find", store, "-o", out).err.split())
