"""Captions above objects: asked at a level, from the same look, and the level of objects as it always was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saywhere.core import Box, InvalidFile, InvalidValue, Point, UnknownName, WholeImage
from saywhere.models.face import MissingSkill, check_level
from saywhere.models.patchioner.consensus import ConsensusConfig
from saywhere.models.patchioner.decoder import PrefixDecoder
from saywhere.models.patchioner.memory import Direct, MemoryGap
from saywhere.models.patchioner.seer import Seer, read_config, save_config
from saywhere.models.patchioner.writers import Generation, MemoryWriter, VectorWriter, check_names, check_prompts
from saywhere.models.search import GenerationConfig
from saywhere.vision import Found
from tests.models.patchioner_seeing import (
    FOUND,
    LEFT,
    LEVELS,
    TOP_RIGHT,
    ThingWriter,
    agreeing_seer,
    alignment,
    bank,
    decoder,
    eyes,
    level_decoder,
    open_tiny,
    photo,
    seer,
    tags,
)
from tests.models.test_patchioner_seer import CONFIG

REGIONS = (WholeImage(), Box(*LEFT), Box(*TOP_RIGHT), Point(0.9, 0.9))
SETTINGS = {"levels": list(LEVELS), "level_writer": "levels", "level_gap": "direct", "level_beams": 2}


def scenic_seer(gap: MemoryGap | Direct | None = None, how: Generation | None = None) -> Seer:
    return seer(level_writer=VectorWriter(level_decoder(), gap or Direct(), how or GenerationConfig()))


def test_a_seer_tells_its_levels_and_has_the_skill_of_scenes() -> None:
    tiny = scenic_seer()
    assert tiny.levels == tiny.look(photo()).levels == ("object", *LEVELS)
    assert tiny.skills == ("caption", "ground", "narrate", "scene")
    assert seer().levels == ("object",)
    assert "scene" not in seer().skills


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("gap", [None, MemoryGap(bank(), 0.1)])
def test_a_caption_at_a_level_is_what_its_writer_says_to_the_levels_name(level: str, gap: MemoryGap | None) -> None:
    look = scenic_seer(gap).look(photo())
    vectors = (gap or Direct()).close(look.aligned.vectors(REGIONS)).vectors
    expected = level_decoder().write(vectors, GenerationConfig(), [level] * len(REGIONS))
    said = look.captions(REGIONS, level=level)
    assert [one.text for one in said] == [one.text for one in expected]
    assert [one.score for one in said] == pytest.approx([one.score for one in expected], abs=1e-5)


def test_levels_and_regions_are_told_apart() -> None:
    look = scenic_seer().look(photo())
    assert len({look.caption(level=level).text for level in look.levels}) == len(look.levels)
    assert len({one.text for one in look.captions(REGIONS, level="rationale")}) > 1


def test_how_near_and_how_sure_is_said_of_a_level_as_of_objects() -> None:
    look = scenic_seer().look(photo())
    for region, sure in ((WholeImage(), False), (Box(*LEFT), True)):
        there, above = (look.caption(region, level=level) for level in ("object", "action"))
        assert (above.similarity, above.sure, above.nearest) == (there.similarity, there.sure, there.nearest)
        assert above.sure is sure
        assert 0 < above.confidence < 1
        assert str(above) == above.text + ("" if sure else " (unsure)")


def test_the_scene_is_the_caption_of_the_whole_photo_at_that_level() -> None:
    look = scenic_seer().look(photo())
    assert look.scene() == look.caption(WholeImage(), level="scene")


@given(st.lists(st.integers(0, len(REGIONS) - 1), max_size=6), st.sampled_from(LEVELS))
def test_one_caption_at_a_level_is_a_batch_of_one(numbers: list[int], level: str) -> None:
    look = scenic_seer().look(photo())
    said = look.captions([REGIONS[number] for number in numbers], level=level)
    assert [one.text for one in said] == [look.caption(REGIONS[number], level=level).text for number in numbers]


def test_objects_are_told_the_same_with_and_without_levels() -> None:
    plain, above = agreeing_seer(), VectorWriter(level_decoder(), generation=GenerationConfig("beam", beams=2))
    scenic = seer(writer=plain.writer.objects, level_writer=above, least_similarity=0.0)
    first, second = (one.look(photo()) for one in (plain, scenic))
    assert first.captions(REGIONS) == second.captions(REGIONS) == second.captions(REGIONS, level="object")
    assert first.narrate().caption == second.narrate().caption
    # The care that is taken with whole photos is for objects alone.
    vectors = second.aligned.vectors([WholeImage()])
    [expected] = level_decoder().write(vectors, GenerationConfig("beam", beams=2), ["action"])
    assert second.caption(level="action").text == expected.text


def test_how_to_write_is_the_levels_own_unless_it_is_said() -> None:
    tiny = scenic_seer()
    vectors = tiny.look(photo()).aligned.vectors([WholeImage()])
    ways = {
        how: level_decoder().write(vectors, how, ["action"])[0].text
        for how in (GenerationConfig(), GenerationConfig("beam"))
    }
    assert len(set(ways.values())) == 2
    careful = scenic_seer(how=GenerationConfig("beam")).look(photo())
    assert careful.caption(level="action").text == ways[GenerationConfig("beam")]
    assert careful.caption(how=GenerationConfig(), level="action").text == ways[GenerationConfig()]
    assert tiny.look(photo()).caption(level="action").text == ways[GenerationConfig()]


def test_a_level_may_be_written_by_consensus_whatever_the_region() -> None:
    way = ConsensusConfig(2, 6, temperature=2.0, min_words=2)
    look = scenic_seer(how=way).look(photo())
    vectors = look.aligned.vectors(REGIONS)
    drawn = level_decoder().draw(vectors, 6, way.drawing, ["scene"] * len(REGIONS))
    careful = level_decoder().write(vectors, way.careful, ["scene"] * len(REGIONS))
    for one, first, others in zip(look.captions(REGIONS, level="scene"), careful, drawn, strict=True):
        assert one.text in {first.text, *(other.text for other in others)}


def test_texts_are_drawn_after_a_prompt_as_they_are_written_after_it() -> None:
    model, way = level_decoder(), GenerationConfig("nucleus", temperature=2.0, seed=4)
    vectors = bank().vectors.astype("float32")
    prompts = ["scene", "", "action"]
    drawn = model.draw(vectors, 3, way, prompts)
    for number in range(3):
        seeded = GenerationConfig("nucleus", temperature=2.0, seed=4 + number)
        written = model.write(vectors, seeded, prompts)
        assert [texts[number].text for texts in drawn] == [one.text for one in written]
    plain = model.draw(vectors, 3, way)
    assert [[one.text for one in texts] for texts in drawn] != [[one.text for one in texts] for texts in plain]
    with pytest.raises(InvalidValue, match="there are 1 for 3"):
        model.draw(vectors, 3, way, ["scene"])


def test_the_scores_of_a_levels_words_are_those_that_its_writer_gives_its_own_text() -> None:
    for gap in (None, MemoryGap(bank(), 0.1)):
        tiny = scenic_seer(gap)
        look = tiny.look(photo())
        [written], _ = tiny.writer.write(look.aligned.vectors([Box(*LEFT)]), GenerationConfig(), level="action")
        scores = [look.word_score(Box(*LEFT), written.text, i, "action") for i in range(len(written.text.split()))]
        there = torch.ones(1, len(scores[0].cells), dtype=torch.bool)
        total = sum(one(one.features[None], there, torch.zeros(1)).item() for one in scores)
        assert len(scores) > 1
        pieces = len(written.token_logprobs) - written.ended
        assert total == pytest.approx(sum(written.token_logprobs[:pieces]), abs=1e-4)


def test_a_level_that_is_not_known_is_refused_with_those_that_are() -> None:
    look = scenic_seer().look(photo())
    for ask in (
        lambda: look.caption(level="scenes"),
        lambda: look.captions([], level="scenes"),
        lambda: look.word_score(WholeImage(), "in a garden", 0, "scenes"),
    ):
        with pytest.raises(UnknownName, match=r"unknown level 'scenes'\. Did you mean 'scene'") as refused:
            ask()
        assert refused.value.known == sorted(("object", *LEVELS))


def test_a_seer_without_levels_says_so_and_what_to_do() -> None:
    look = seer().look(photo())
    for ask in (lambda: look.captions([], level="scene"), lambda: look.caption(level="scnee")):
        with pytest.raises(InvalidValue, match="the model tiny has captions of the level 'object' alone") as refused:
            ask()
        assert "use a model" in refused.value.hint
    with pytest.raises(MissingSkill, match=r"the model tiny cannot say where a photo is taken.*saywhere-base"):
        look.scene()


@pytest.mark.parametrize(
    ("levels", "writer", "reason"),
    [
        (["scene"], None, "come together"),
        ([], level_decoder(), "come together"),
        (["object"], level_decoder(), "told by the model's own writer"),
        (["scene", "scene"], level_decoder(), "comes twice"),
        (["scene", " "], level_decoder(), "has no name"),
        (["scene", "mood"], level_decoder(), "does not know the word 'mood'"),
        (["scene action"], level_decoder(), "learnt with up to 1"),
        (["cat"], decoder(), "learnt with up to 0"),
    ],
)
def test_levels_that_a_writer_cannot_tell_are_refused(
    levels: list[str], writer: PrefixDecoder | None, reason: str
) -> None:
    above = None if writer is None else lambda: VectorWriter(writer)
    with pytest.raises(InvalidValue, match=reason):
        assert MemoryWriter(bank(), VectorWriter(ThingWriter()), levels, above).above


def test_levels_of_any_other_writer_are_taken_at_their_word() -> None:
    check_prompts(["mood"], ThingWriter())
    check_names(["mood"])
    check_level("mood", ("object", "mood"), "tiny")
    with pytest.raises(InvalidValue, match="not a ThingWriter"):
        _with_thing_writer().look(photo()).caption(how=ConsensusConfig(), level="mood")


def _with_thing_writer() -> Seer:
    writer = VectorWriter(ThingWriter())
    return Seer(eyes(), MemoryWriter(bank(), writer, ["mood"], lambda: writer))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "seer"
    alignment().save_pretrained(root / "alignment")
    tags().save_pretrained(root / "tags")
    bank().save(root / "memory.safetensors")
    decoder().save_pretrained(root / "decoder")
    level_decoder().save_pretrained(root / "levels")
    save_config(root, CONFIG | {"writers": {"own": "decoder"}} | SETTINGS)
    return root


def _opened(folder: Path, **changes: object) -> Seer:
    save_config(folder, CONFIG | {"writers": {"own": "decoder"}} | SETTINGS | changes)
    return open_tiny(folder)


def test_a_folder_says_which_levels_there_are_and_how_they_are_written(folder: Path) -> None:
    opened = _opened(folder)
    assert opened.levels == ("object", *LEVELS)
    assert isinstance(opened.writer.above.gap, Direct)
    assert opened.writer.above.generation == GenerationConfig("beam", beams=2)
    vectors = opened.look(photo()).aligned.vectors([WholeImage()])
    [expected] = level_decoder().write(vectors, GenerationConfig("beam", beams=2), ["scene"])
    assert opened.look(photo()).scene().text == expected.text
    remembering = _opened(folder, level_gap="memory", level_beams=1, no_repeat=2)
    assert isinstance(remembering.writer.above.gap, MemoryGap)
    assert remembering.writer.above.gap.temperature == CONFIG["temperature"]
    assert remembering.writer.above.generation == GenerationConfig("greedy", beams=1, no_repeat=2)
    agreeing = _opened(folder, level_beams=3, level_draws=4)
    assert agreeing.writer.above.generation == ConsensusConfig(3, 4, no_repeat=0, min_words=3)
    without = _opened(folder, levels=[], level_writer="")
    assert (without.levels, without.writer.above) == (("object",), None)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"levels": []}, "come together"),
        ({"level_writer": ""}, "come together"),
        ({"levels": ["object", "scene"]}, "name only those above it"),
        ({"levels": ["scene", "scene"]}, "comes twice"),
        ({"level_gap": "dirct"}, "Did you mean 'direct'"),
        ({"level_beams": 0}, "not at least 1"),
        ({"level_draws": -1}, "not at least 1 and 0"),
        ({"levels": "scene"}, "Expected `array`"),
    ],
)
def test_a_wrong_description_of_levels_is_a_clear_error(folder: Path, change: dict[str, object], reason: str) -> None:
    (folder / "seer.json").write_text(json.dumps(CONFIG | SETTINGS | change))
    with pytest.raises(InvalidFile, match=reason):
        read_config(folder)


def test_a_writer_of_levels_that_is_not_there_is_a_clear_error(folder: Path) -> None:
    with pytest.raises(InvalidFile, match="elsewhere"):
        _opened(folder, level_writer="elsewhere").look(photo()).scene()


@pytest.mark.parametrize(("found", "sure"), [(FOUND, True), (FOUND[1:], False)])
def test_what_people_do_is_unsure_where_no_person_was_found(
    found: tuple[Found, ...], sure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saywhere.models.patchioner.writers.PERSON", FOUND[0].name)
    look = seer(level_writer=VectorWriter(level_decoder()), found=found).look(photo())
    assert look.caption(Box(*LEFT), level="action").sure is sure
    assert look.caption(Box(*LEFT), level="rationale").sure is sure
    assert look.caption(Box(*LEFT), level="scene").sure
    assert look.caption(Box(*LEFT)).sure
