from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from saywhere.core import Narrative, Trace, Utterance
from saywhere.formats import localized_narratives
from saywhere.metrics import caption_scores, lbm
from tests.cli.conftest import Ran
from tests.cli.test_data import CUP, SPOON

Run = Callable[..., Ran]


def put(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value))
    return path


def test_captions_are_scored_from_coco_files_and_plain_objects(saywhere: Run, tmp_path: Path) -> None:
    said = {"1": "a cup on a table", "2": "two dogs"}
    meant = {"1": ["a cup on the table", "one cup"], "2": ["two dogs run", "dogs"]}
    images = [{"id": int(i), "file_name": f"{i}.jpg", "width": 4, "height": 4} for i in meant]
    notes = [
        {"id": n, "image_id": int(i), "caption": c} for n, (i, c) in enumerate((i, c) for i in meant for c in meant[i])
    ]
    results = put(tmp_path / "results.json", [{"image_id": int(i), "caption": c} for i, c in said.items()])
    truth = put(tmp_path / "captions.json", {"images": images, "annotations": notes})
    out = tmp_path / "scores.json"
    ran = saywhere("score", "captions", results, truth, "--out", out)
    assert ran.code == 0, ran.err
    written = json.loads(out.read_text())
    expected = caption_scores(said, meant)["corpus"]
    assert written["scores"]["CIDEr"] == pytest.approx(expected["CIDEr"])
    assert set(written["per_item"]) == {"1", "2"}
    assert written["made_by"]["inputs"]["results.json"].startswith("sha256:")
    plain = saywhere("score", "captions", put(tmp_path / "a.json", said), put(tmp_path / "b.json", meant))
    assert plain.out == ran.out


def test_traces_are_scored_by_lbm(saywhere: Run, tmp_path: Path) -> None:
    moved = replace(CUP, trace=Trace(CUP.trace.points * [0.5, 0.5, 1]))
    localized_narratives.write(tmp_path / "true.jsonl", [CUP, SPOON])
    localized_narratives.write(tmp_path / "guess.jsonl", [SPOON, moved])
    same = saywhere("score", "traces", tmp_path / "true.jsonl", tmp_path / "true.jsonl")
    assert "LBM (k=0, paper)                   0.0000" in same.out
    ran = saywhere(
        "score", "traces", tmp_path / "guess.jsonl", tmp_path / "true.jsonl", "-k", 1, "--out", tmp_path / "s.json"
    )
    assert ran.code == 0, ran.err
    boxes = [n.word_boxes().boxes_xyxy[n.word_boxes().located] for n in (moved, CUP)]
    scores = json.loads((tmp_path / "s.json").read_text())["scores"]
    assert scores["LBM (k=1, paper)"] == pytest.approx(lbm(*boxes, k=1))
    assert scores["without located words in one file"] == 1


def test_the_released_protocol_drops_unlocated_words_from_the_truth_alone(saywhere: Run, tmp_path: Path) -> None:
    # Four words are said long before the pointer moves: nothing tells their place.
    early = tuple(Utterance(word, float(i), i + 1.0) for i, word in enumerate(("now", "there", "is", "the")))
    late = (Utterance("red", 20.0, 21.0), Utterance("cup", 21.0, 22.0))
    trace = Trace([(0.1, 0.1, 20.1), (0.2, 0.3, 20.9), (0.6, 0.6, 21.1), (0.7, 0.8, 21.9)])
    told = replace(CUP, caption="now there is the red cup", utterances=early + late, trace=trace)
    assert told.word_boxes().located.tolist() == [False] * 4 + [True] * 2
    localized_narratives.write(tmp_path / "true.jsonl", [told])
    scores = {}
    for protocol in ("paper", "released"):
        ran = saywhere(
            *("score", "traces", tmp_path / "true.jsonl", tmp_path / "true.jsonl"),
            *("--protocol", protocol, "--out", tmp_path / "s.json"),
        )
        assert ran.code == 0, ran.err
        scores[protocol] = json.loads((tmp_path / "s.json").read_text())["scores"][f"LBM (k=0, {protocol})"]
    true = told.word_boxes().located_xyxy
    # As the authors' program: a perfect prediction keeps its whole-image boxes, so that it does not score 0.
    assert scores["released"] == pytest.approx(lbm([(0, 0, 1, 1)] * 4 + true.tolist(), true, protocol="released"))
    assert scores["released"] > 0.1
    assert scores["paper"] == 0


def test_a_narrative_missing_from_one_file_is_named(saywhere: Run, tmp_path: Path) -> None:
    localized_narratives.write(tmp_path / "true.jsonl", [CUP, replace(CUP, image_id="5")])
    localized_narratives.write(tmp_path / "guess.jsonl", [CUP])
    ran = saywhere("score", "traces", tmp_path / "guess.jsonl", tmp_path / "true.jsonl")
    assert ran.code == 2
    assert "guess.jsonl: lacks 1 of the other file's items, such as ('mine/5/3', 0)" in ran.err


def test_answers_are_scored_by_type(saywhere: Run, tmp_path: Path) -> None:
    questions = {"questions": [{"question_id": i, "image_id": 1, "question": "is it?"} for i in (1, 2)]}
    people = [[{"answer": "yes", "answer_id": a, "answer_confidence": "yes"} for a in range(1, 11)]] * 2
    notes = {
        "annotations": [
            {
                "question_id": i,
                "image_id": 1,
                "question_type": "is it",
                "answer_type": kind,
                "multiple_choice_answer": "yes",
                "answers": people[i - 1],
            }
            for i, kind in ((1, "yes/no"), (2, "other"))
        ]
    }
    files = put(tmp_path / "q.json", questions), put(tmp_path / "a.json", notes)
    given = put(tmp_path / "r.json", [{"question_id": 1, "answer": "yes"}, {"question_id": 2, "answer": "no"}])
    ran = saywhere("score", "answers", given, *files, "--out", tmp_path / "s.json")
    assert ran.code == 0, ran.err
    scores = json.loads((tmp_path / "s.json").read_text())["scores"]
    assert scores == {"accuracy": 0.5, "yes/no": 1.0, "other": 0.0}
    partly = put(tmp_path / "p.json", [{"question_id": 1, "answer": "yes"}])
    assert "answers none of 1 questions, such as 2" in saywhere("score", "answers", partly, *files).err


def test_yes_and_no_are_scored(saywhere: Run, tmp_path: Path) -> None:
    lines = [
        {"question_id": i, "image": "a.jpg", "text": "Is there?", "label": label}
        for i, label in ((1, "yes"), (2, "no"))
    ]
    (tmp_path / "pope.json").write_text("\n".join(map(json.dumps, lines)))
    given = put(tmp_path / "r.json", [{"question_id": i, "answer": "Yes, there is."} for i in (1, 2)])
    ran = saywhere("score", "yes-no", given, tmp_path / "pope.json", "--out", tmp_path / "s.json")
    assert ran.code == 0, ran.err
    scores = json.loads((tmp_path / "s.json").read_text())["scores"]
    assert (scores["accuracy"], scores["recall"], scores["yes_rate"]) == (0.5, 1.0, 1.0)


def test_boxes_are_scored(saywhere: Run, tmp_path: Path) -> None:
    truth = put(tmp_path / "t.json", {"a": [0, 0, 1, 1], "b": [0, 0, 1, 1]})
    guess = put(tmp_path / "g.json", {"b": [0, 0, 1, 0.25], "a": [0, 0, 1, 0.75]})
    ran = saywhere("score", "boxes", guess, truth, "--out", tmp_path / "s.json")
    assert ran.code == 0, ran.err
    assert json.loads((tmp_path / "s.json").read_text())["scores"] == {"P@0.5": 0.5, "mean IoU": 0.5, "boxes": 2}


def test_saliency_maps_are_scored_against_fixations(saywhere: Run, tmp_path: Path) -> None:
    (tmp_path / "maps").mkdir()
    ramp = np.tile(np.arange(64, dtype=np.uint8) * 4, (48, 1))
    Image.fromarray(ramp).save(tmp_path / "maps" / "right.png")
    images = [{"id": 7, "file_name": "right.jpg", "width": 640, "height": 480}]
    looks = [{"id": 1, "image_id": 7, "worker_id": 1, "fixations": [[100, 600], [200, 620]]}]
    gaze = put(tmp_path / "gaze.json", {"type": "fixations", "images": images, "annotations": looks})
    (tmp_path / "maps" / "7.png").write_bytes((tmp_path / "maps" / "right.png").read_bytes())
    ran = saywhere("score", "saliency", tmp_path / "maps", gaze, "--out", tmp_path / "s.json")
    assert ran.code == 0, ran.err
    scores = json.loads((tmp_path / "s.json").read_text())["scores"]
    assert scores["images"] == 1
    assert scores["NSS"] > 1
    assert scores["AUCJudd"] > 0.9


@pytest.mark.parametrize(
    ("content", "reason"),
    [("[1, 2]", "in no format that saywhere knows"), ("", "is empty"), ('{"1": ["a", "b"]}', "2 captions for image 1")],
)
def test_predictions_that_cannot_be_scored_are_refused(
    saywhere: Run, tmp_path: Path, content: str, reason: str
) -> None:
    (tmp_path / "p.json").write_text(content)
    ran = saywhere("score", "captions", tmp_path / "p.json", put(tmp_path / "t.json", {"1": ["a"]}))
    assert ran.code == 2
    assert reason in ran.err


def test_narratives_serve_as_references(saywhere: Run, tmp_path: Path) -> None:
    localized_narratives.write(tmp_path / "true.jsonl", [CUP, Narrative("18", "a spoon")])
    given = put(tmp_path / "p.json", {"17": "a cup on the table", "18": "a spoon"})
    ran = saywhere("score", "captions", given, tmp_path / "true.jsonl", "--metrics", "bleu")
    assert ran.code == 0, ran.err
    assert "BLEU-1    1.0000" in ran.out
