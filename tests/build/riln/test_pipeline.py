"""The builder: the same from the same seed, resumed without a difference, reviewed by people, read from any format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from saywhere.build.photo_boxes import PhotoBoxes
from saywhere.build.riln.example import RilnExample, content_digest, read_riln
from saywhere.build.riln.overlap import EvaluationText
from saywhere.build.riln.pipeline import (
    TOO_MUCH_OVERLAP,
    RilnManifest,
    RilnMaterial,
    RilnSettings,
    build_riln,
    read_manifest,
)
from saywhere.build.riln.report import report_text
from saywhere.build.riln.review import REJECTED, ReviewDecision, read_review, review_html, sampled
from saywhere.build.riln.selection import Selection
from saywhere.build.riln.sources import PSEUDO_TRACE, pseudo_narrative, read_told, video_narratives
from saywhere.build.riln.templates import TemplateGenerator
from saywhere.core import InvalidFile, Narrative
from saywhere.core.types import Progress
from saywhere.formats import localized_narratives
from saywhere.formats.record import InvalidRecord
from saywhere.formats.trecs import TaggedNarration
from saywhere.formats.video_narratives import ActorNarrative, VideoNarrative
from tests.build.riln.told import SAID, told

FIVE = [told(str(i)) for i in range(5)]
SMALL = RilnSettings(shard=2)


def build(
    folder: Path,
    source: list[Narrative] = FIVE,
    settings: RilnSettings = SMALL,
    material: RilnMaterial | None = None,
    progress: Progress | None = None,
) -> RilnManifest:
    return build_riln(source, folder, TemplateGenerator(), settings, material, progress)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def decision(example: RilnExample, decided: str, *texts: str) -> dict[str, object]:
    given = {"texts": texts} if texts else {}
    return {"id": example.id, "digest": content_digest(example), "decision": decided, **given}


def examples(folder: Path) -> list[RilnExample]:
    found = list(read_riln(folder))
    assert all(isinstance(one, RilnExample) for one in found)
    return [one for one in found if isinstance(one, RilnExample)]


def test_every_narrative_gives_twelve_questions_and_three_to_five_dialogues(tmp_path: Path) -> None:
    found = build(tmp_path).statistics
    assert (found.records, found.narratives, len(found.images)) == (5, 5, 5)
    assert set(found.questions.values()) == {5}
    assert len(found.questions) == 12
    assert 15 <= found.dialogues <= 25
    assert (found.points_before, found.split, found.rejections) == (5 * 52, {"training": 5}, {})
    assert len(examples(tmp_path)) == found.examples == len({one.id for one in examples(tmp_path)})
    assert {path.name for path in tmp_path.iterdir()} == {
        *(f"examples-0000{i}.jsonl" for i in range(3)),
        "manifest.json",
    }


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        build(tmp_path / name, settings=RilnSettings(seed, shard=2))
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert contents(tmp_path / "a")["examples-00000.jsonl"] != contents(tmp_path / "c")["examples-00000.jsonl"]


def test_what_becomes_of_a_narrative_does_not_depend_on_the_others(tmp_path: Path) -> None:
    build(tmp_path / "five")
    build(tmp_path / "one", FIVE[3:4])
    alone = examples(tmp_path / "one")
    assert alone == [one for one in examples(tmp_path / "five") if one.image == "3"]


@pytest.mark.parametrize("after", [1, 2])
def test_a_killed_run_goes_on_to_the_same_bytes_and_keeps_whole_shards(tmp_path: Path, after: int) -> None:
    build(tmp_path / "whole")

    def kill(doing: str, done: int, total: int, /) -> None:
        if done == 2 * after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "killed", progress=kill)
    stopped = read_manifest(tmp_path / "killed")
    assert stopped is not None
    assert (stopped.complete, len(stopped.shards)) == (False, after)
    first = tmp_path / "killed" / "examples-00000.jsonl"
    stamp = first.stat().st_mtime_ns
    build(tmp_path / "killed")
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    assert first.stat().st_mtime_ns == stamp


def test_a_damaged_shard_and_one_that_is_no_longer_wanted_are_mended(tmp_path: Path) -> None:
    build(tmp_path)
    before = contents(tmp_path)
    (tmp_path / "examples-00001.jsonl").write_bytes(b"torn")
    (tmp_path / ".examples-00002.jsonl.x1y2.part").write_bytes(b"what a killed run was writing")
    build(tmp_path)
    assert contents(tmp_path) == before
    build(tmp_path, FIVE[:2])
    assert {path.name for path in tmp_path.iterdir()} == {"examples-00000.jsonl", "manifest.json"}
    assert contents(tmp_path)["examples-00000.jsonl"] == before["examples-00000.jsonl"]


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"format": "other"}')
    with pytest.raises(InvalidFile, match="not the manifest"):
        build(tmp_path)


def test_records_that_are_not_used_are_counted_by_reason(tmp_path: Path) -> None:
    source = [told("1"), told("1"), told("2", "x_val"), told("3"), InvalidRecord("f", 1, "bad")]
    material = RilnMaterial(selection=Selection(keep_out=frozenset({"000000000003"})))
    found = build_riln(source, tmp_path, TemplateGenerator(), SMALL, material).statistics
    assert found.rejections == {
        "narrative: it is there twice": 1,
        "narrative: not of a training split": 1,
        "narrative: its image is kept for evaluation": 1,
        "narrative: it cannot be read": 1,
    }
    assert (found.records, found.narratives) == (5, 1)


def test_an_image_gets_its_dialogues_from_one_narrative_alone(tmp_path: Path) -> None:
    again = Narrative("0", SAID, told().utterances, told().trace, "made_up_train", "another annotator")
    found = build(tmp_path, [FIVE[0], again]).statistics
    assert (found.narratives, len(found.images), found.dialogue_images) == (2, 1, 1)
    assert 3 <= found.dialogues <= 5
    assert sum(found.questions.values()) == 24


def test_examples_that_share_five_per_cent_with_evaluation_text_are_dropped(tmp_path: Path) -> None:
    known = EvaluationText.of(["Behind it there is a red house"])
    found = build(tmp_path, material=RilnMaterial(known)).statistics
    assert found.rejections[TOO_MUCH_OVERLAP] > 5
    assert found.overlap is not None
    assert found.kept_overlap is not None
    assert found.overlap > found.kept_overlap
    assert found.kept_overlap < 0.05
    for example in examples(tmp_path):
        shared, all_grams = known.shared([turn.text for turn in example.turns])
        assert example.checks.overlap == (round(shared / all_grams, 4) if all_grams else 0.0) < 0.05
    assert "| below 5 % |" in report_text(build(tmp_path, material=RilnMaterial(known)), known)


def test_examples_whose_things_are_elsewhere_are_dropped(tmp_path: Path) -> None:
    elsewhere = {f"00000000000{i}": PhotoBoxes(f"00000000000{i}", {"dog": ((0.7, 0.1, 0.9, 0.3),)}) for i in range(5)}
    found = build(tmp_path, material=RilnMaterial(boxes=elsewhere)).statistics
    assert found.rejections["boxes: pointed at no box of what was named"] > 5
    assert all(
        "dog" not in phrase.text for one in examples(tmp_path) if one.level == "object" for phrase in one.phrases
    )
    assert {one.checks.boxes for one in examples(tmp_path)} == {"consistent"}


def test_decisions_of_a_review_come_back_as_they_were_made(tmp_path: Path) -> None:
    build(tmp_path)
    before = examples(tmp_path)
    gone, edited, outside, kept = before[0], before[3], before[4], before[5]
    new = ["Which thing is that?", f"{edited.turns[1].text} Indeed."]
    decisions = [
        decision(gone, "reject"),
        decision(edited, "edit", *new),
        decision(outside, "edit", "Where?", "<traj>(0,0)</traj>"),
        decision(kept, "accept"),
    ]
    file = tmp_path / "decisions.json"
    file.write_text(json.dumps(decisions))
    made = build(tmp_path, material=RilnMaterial(review=read_review(file)))
    after = {one.id: one for one in examples(tmp_path)}
    assert gone.id not in after
    assert outside.id not in after
    assert [turn.text for turn in after[edited.id].turns] == new
    assert (after[edited.id].checks.review, after[kept.id].checks.review) == ("edit", "accept")
    assert made.statistics.rejections[REJECTED] == 1
    assert made.statistics.rejections["coordinates: outside what was pointed at"] == 1
    assert "| examples reviewed by people | 4 | 2,000 |" in report_text(made, EvaluationText())


def test_what_people_decide_about_an_example_changes_no_other(tmp_path: Path) -> None:
    build(tmp_path, FIVE[:1])
    before = examples(tmp_path)
    spoken = [one for one in before if one.task == "dialogue"]
    review = {
        before[0].id: ReviewDecision(before[0].id, content_digest(before[0]), "reject"),
        before[1].id: ReviewDecision(before[1].id, content_digest(before[1]), "edit", ("Where is it?", "Nowhere.")),
        spoken[0].id: ReviewDecision(spoken[0].id, content_digest(spoken[0]), "reject"),
    }
    made = build(tmp_path, FIVE[:1], material=RilnMaterial(review=review))
    others = [one for one in before if one.id not in review]
    assert [one for one in examples(tmp_path) if one.id not in review] == others
    assert (made.statistics.decided, made.unfit) == (3, 0)


def test_a_decision_about_another_text_is_told_and_not_applied(tmp_path: Path) -> None:
    build(tmp_path, FIVE[:1], RilnSettings(seed=1))
    others = examples(tmp_path)
    review = {one.id: ReviewDecision(one.id, content_digest(one), "reject") for one in others}
    review["nobody"] = ReviewDecision("nobody", "0", "accept")
    build(tmp_path, FIVE[:1])
    before = examples(tmp_path)
    made = build(tmp_path, FIVE[:1], material=RilnMaterial(review=review))
    same = {content_digest(one) for one in others} & {content_digest(one) for one in before}
    assert [one.id for one in examples(tmp_path)] == [one.id for one in before if content_digest(one) not in same]
    assert {one.checks.review for one in examples(tmp_path)} == {"not reviewed"}
    assert made.unfit == len(review) - len(same) > 1
    assert f"| decisions about a text that is not there | {made.unfit} | – |" in report_text(made, EvaluationText())


@pytest.mark.parametrize(
    "bad",
    [
        *("{}", "[1]", "[", '[{"id": "a", "digest": "0"}]', '[{"id": "a", "decision": "accept"}]'),
        *(f'[{{"id": "a", "digest": "0", "decision": "{decided}"}}]' for decided in ("maybe", "edit")),
    ],
)
def test_a_file_that_holds_no_decisions_is_refused(tmp_path: Path, bad: str) -> None:
    (tmp_path / "decisions.json").write_text(bad)
    with pytest.raises(InvalidFile, match="not the decisions of a review"):
        read_review(tmp_path / "decisions.json")


def test_the_review_sheet_holds_every_example_and_lets_nothing_of_theirs_run(tmp_path: Path) -> None:
    caption = SAID.replace("dog", "<script>alert(1)</script>")
    build(tmp_path, [told("<b>7", caption=caption)], RilnSettings(per_cell=1))
    shown = examples(tmp_path)
    page = review_html(shown)
    assert page.count("<article ") == len(shown)
    assert page.count("<script>") == 1
    assert "&lt;b&gt;7" in page
    assert "default-src 'none'" in page
    assert page == review_html(shown)


def test_a_sample_is_drawn_by_seed_and_keeps_the_order(tmp_path: Path) -> None:
    build(tmp_path)
    everything = examples(tmp_path)
    some = sampled(everything, 10, seed=3)
    assert some == sampled(iter(everything), 10, seed=3) != sampled(everything, 10, seed=4)
    assert [everything.index(one) for one in some] == sorted(everything.index(one) for one in some)
    assert sampled(everything, 10_000, 0) == everything


def test_a_bad_line_of_examples_is_a_value_in_its_place(tmp_path: Path) -> None:
    build(tmp_path, FIVE[:1])
    file = tmp_path / "examples-00000.jsonl"
    lines = file.read_bytes().splitlines()
    file.write_bytes(b"\n".join([lines[0], lines[1].replace(b'"task":"question"', b'"task":"other"'), *lines[2:]]))
    found = list(read_riln(tmp_path))
    assert isinstance(found[1], InvalidRecord)
    assert found[1].line == 2
    assert sum(isinstance(one, RilnExample) for one in found) == len(lines) - 1


def test_narratives_are_read_from_files_and_from_folders_of_worlds(tmp_path: Path) -> None:
    localized_narratives.write(tmp_path / "narratives.jsonl", FIVE)
    assert list(read_told(tmp_path, {})) == list(read_told(tmp_path / "narratives.jsonl", {})) == FIVE
    (tmp_path / "captions.json").write_text('{"images": [], "annotations": [], "info": {}}')
    with pytest.raises(InvalidFile):
        list(read_told(tmp_path / "captions.json", {}))


def test_only_the_training_images_of_a_world_are_used(tmp_path: Path) -> None:
    localized_narratives.write(tmp_path / "narratives.jsonl", [told(str(i), "saywhere_world") for i in range(3)])
    splits = [{"id": i, "split": split} for i, split in enumerate(("train", "val", "test"))]
    (tmp_path / "instances.json").write_text(json.dumps({"images": splits, "annotations": []}))
    read = list(read_told(tmp_path, {}))
    assert [Selection().fault(one) == "" for one in read] == [True, False, False]
    (tmp_path / "instances.json").write_text("{}")
    with pytest.raises(InvalidFile, match="splits"):
        list(read_told(tmp_path, {}))


def test_an_actor_of_a_video_keeps_the_key_frame_where_most_of_the_trace_is() -> None:
    narrative = told("clip")
    frames = (0,) * 12 + (1,) * 40
    actor = ActorNarrative("dog", narrative, frames, (0, 1), (), (), 0.0)
    (made,) = _told(VideoNarrative("clip", ("img_0", "img_1"), (actor,)))
    assert made.image_id == "clip/img_1"
    assert made.trace.points.tolist() == narrative.trace.points[12:].tolist()


def _told(video: VideoNarrative) -> Iterator[Narrative]:
    return video_narratives(video)


def test_tags_and_boxes_make_a_pseudo_trace_that_is_called_so() -> None:
    tagged = TaggedNarration("7", "3", ("a", "dog", "there"), ("dog", "dog", "sky-other"))
    photo = PhotoBoxes("000000000007", {"dog": ((0.1, 0.1, 0.2, 0.2), (0.4, 0.4, 0.8, 0.8))})
    made = pseudo_narrative(tagged, "val_coco", photo)
    assert (made.origin, made.dataset_id, made.annotator_id) == (PSEUDO_TRACE, "val_coco", "3")
    assert [round(n, 2) for n in made.trace.bounds_xyxy] == [0.4, 0.4, 0.8, 0.8]
    assert not len(pseudo_narrative(tagged, "val_coco", None).trace)
