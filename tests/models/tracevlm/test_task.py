"""TraceVLM under the trainer, stage by stage to the first step of the optimiser, and what `load` makes of it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest
import torch

import saywhere
from saywhere.core import Box, InvalidValue, Point, Trace, UnknownName, WholeImage
from saywhere.learn import known_tasks, load_run, train
from saywhere.learn.trained import export
from saywhere.models.face import StreamingConversation
from saywhere.models.search import GenerationConfig
from saywhere.models.tracevlm import decode
from saywhere.models.tracevlm.decode import WrittenAnswer
from saywhere.models.tracevlm.examples import SegmentTarget, answered, asked
from saywhere.models.tracevlm.face import TraceVlmModel, told
from saywhere.models.tracevlm.network import TraceVLM
from saywhere.models.tracevlm.parsing import parse
from saywhere.models.tracevlm.qwen import SEGMENT_TOKENS
from saywhere.models.tracevlm.stages import STAGES, stage
from saywhere.models.tracevlm.task import DataSection, ModelSection, TraceVlmTask
from saywhere.models.tracevlm.trajectory import Trajectory
from tests.models.tracevlm import small

RECIPES = Path(__file__).resolve().parents[3] / "recipes"
SMALL = {"heads": 4, "code": 8, "mask_width": 16, "mask_heads": 2, "lora_rank": 2, "lora_alpha": 4}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    small.save_data(folder)
    return folder


def first_step(name: str, data: Path, run: Path, **model: object) -> TraceVLM:
    """The network after one step of a shipped recipe on small data; from a small base."""
    settings = {"model": {"dtype": "float32", **model}}
    settings["data"] = {"folder": data, "train": 12, "validation": 1}
    settings["train"] = {"batch_size": 12, "accumulate": 2, "epochs": 1, "workers": 0, "precision": "fp32"}
    settings["train"] |= {"lr": 0.01, "device": "cpu", "num_threads": 1}
    settings["schedule"] = {"warmup_steps": 0}
    settings["log"] = {"plot": "false"}
    changes = [f"{part}.{key}={value}" for part, values in settings.items() for key, value in values.items()]
    assert train(RECIPES / f"{name}.toml", run, overrides=changes).status == "finished"
    trained = load_run(run).model
    assert isinstance(trained, TraceVLM)
    return trained


def changed(before: TraceVLM, after: TraceVLM) -> set[str]:
    old = dict(before.named_parameters())
    return {name for name, parameter in after.named_parameters() if not torch.equal(parameter, old[name])}


def parts_of(names: set[str]) -> set[str]:
    marks = {"trajectory.": "trajectory", "perception.": "perception", "segmentation.": "segmentation"}
    marks |= {"trainable_tokens": "tokens", "language_model.layers": "language", "visual.": "vision"}
    return {next(part for mark, part in marks.items() if mark in name) for name in names}


def test_every_stage_trains_what_it_says_to_the_first_step(tmp_path: Path, data: Path) -> None:
    one = first_step("tracevlm-stage1", data, tmp_path / "1", base=small.base(), **SMALL)
    assert all(bool((block.gamma != 0).any()) for block in one.perception.blocks)
    assert all(not bool(parameter.any()) for name, parameter in one.named_parameters() if "lora_B" in name)
    assert one.segmentation.fusion.tolist() == [0.5, 0.5]
    export(tmp_path / "1", tmp_path / "stage1", "last")
    start = TraceVLM.from_pretrained(tmp_path / "stage1")
    joint = first_step("tracevlm-stage1.5", data, tmp_path / "1.5", start=tmp_path / "stage1")
    assert parts_of(changed(start, joint)) == set(STAGES["1.5"].trained)
    export(tmp_path / "1.5", tmp_path / "stage1.5", "last")
    start = TraceVLM.from_pretrained(tmp_path / "stage1.5")
    tuned = first_step("tracevlm-stage2", data, tmp_path / "2", start=tmp_path / "stage1.5")
    assert parts_of(changed(start, tuned)) == {"tokens", "language"}


@pytest.mark.parametrize("name", STAGES)
def test_recipes_have_the_papers_settings(name: str) -> None:
    recipe = tomllib.loads((RECIPES / f"tracevlm-stage{name}.toml").read_text(encoding="utf-8"))
    known, said = STAGES[name], recipe["train"]
    assert recipe["model"]["stage"] == name
    assert (said["lr"], said["batch_size"], said["epochs"]) == (known.lr, known.batch_size, known.epochs)


def test_perception_is_trained_in_stage_2_only_if_it_is_asked_for() -> None:
    assert "perception" not in stage("2").trained
    assert {"perception", "trajectory"} <= set(stage("2", train_perception=True).trained)
    with pytest.raises(UnknownName, match="unknown stage"):
        stage("3")


def test_the_trainer_knows_tracevlm() -> None:
    assert "tracevlm" in known_tasks()


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ({}, "exactly one of them"),
        ({"base": "a", "start": "b"}, "exactly one of them"),
        ({"start": "b", "heads": 4}, "model.heads: is given, but"),
        ({"base": "a", "dice": -1.0}, "negative weight"),
    ],
)
def test_recipes_that_make_no_sense_are_refused(data: Path, model: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        TraceVlmTask(msgspec.convert(model, ModelSection), DataSection(folder=data))


def test_who_goes_on_with_another_context_keeps_it(tmp_path: Path, data: Path) -> None:
    small.model().save_pretrained(tmp_path / "start")
    section = ModelSection(start=str(tmp_path / "start"), context=300)
    built = TraceVlmTask(section, DataSection(folder=data)).build(torch.Generator())
    assert isinstance(built, TraceVLM)
    assert (built.config.context, built.reader.context) == (300, 300)
    section = ModelSection(start=str(tmp_path / "start"))
    built = TraceVlmTask(section, DataSection(folder=data)).build(torch.Generator())
    assert isinstance(built, TraceVLM)
    assert built.config.context == small.CONFIG.context


def test_losses_are_the_mean_over_words_and_masks(data: Path) -> None:
    task = TraceVlmTask(ModelSection(base=str(small.base()), **SMALL), DataSection(folder=data))  # type: ignore[arg-type]
    batch = task.collate(list(task.train_items()), torch.Generator())
    assert task.counts(batch) == {"text": float(batch.learnt.sum()), "masks": 3.0}
    model = task.build(torch.Generator().manual_seed(0))
    losses = task.losses(model, batch, torch.Generator())
    found = {name: float(value.detach()) for name, value in losses.items()}
    assert found["loss"] == pytest.approx(found["text"] + found["masks"])
    assert found["masks"] == pytest.approx(found["bce"] + found["refinement"] + found["dice"])


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> TraceVlmModel:
    folder = tmp_path_factory.mktemp("model") / "pointing"
    small.awake(small.model()).save_pretrained(folder)
    model = saywhere.load(folder)
    assert isinstance(model, TraceVlmModel)
    model.generation = GenerationConfig(max_words=8)
    return model


def test_a_loaded_model_has_its_skills(loaded: TraceVlmModel) -> None:
    look = loaded.look(small.photo())
    regions = (WholeImage(), Box(0, 0, 0.5, 1), Point(0.9, 0.9), small.TRACE)
    captions = look.captions(regions)
    assert [caption.region for caption in captions] == list(regions)
    assert {caption.origin for caption in captions} == {"pointing"}
    assert look.caption(small.TRACE).text == captions[3].text
    assert [word.text for word in look.ground("a red cup").words] == ["a", "red", "cup"]
    assert len(look.grounded("a red cup").boxes) == 3
    assert look.narrate().origin == "pointing"
    assert 0 <= look.answer("what is it?", Point(0.5, 0.5)).probability <= 1
    assert look.segment(small.TRACE).values.shape == (80, 120)


def test_a_view_alone_is_not_enough_but_with_the_photo_it_is(loaded: TraceVlmModel) -> None:
    look = loaded.look(small.photo())
    with pytest.raises(InvalidValue, match="needs the photo itself"):
        loaded.see(look.view).caption()
    assert loaded.see(look.view, small.photo()).caption().text == look.caption().text


@pytest.mark.parametrize(
    ("ask", "reason"),
    [
        (lambda look: look.segment(WholeImage()), "point at what to cut out"),
        (lambda look: look.answer("  "), "has no word"),
        (lambda look: look.caption(Trace([(2, 2, 0)])), "none of its 1 points"),
        (lambda look: look.caption(level="scene"), "scene"),
        (lambda look: look.ground(""), "has no word"),
    ],
)
def test_what_cannot_be_asked_is_a_clear_error(loaded: TraceVlmModel, ask: object, reason: str) -> None:
    assert callable(ask)
    with pytest.raises(InvalidValue, match=reason):
        ask(loaded.look(small.photo()))


def test_a_look_goes_on_without_its_photo_and_an_answer_can_be_heard(loaded: TraceVlmModel) -> None:
    look = loaded.look(small.photo()).without_photo()
    assert look.image is None
    heard: list[str] = []
    talk = look.chat()
    assert isinstance(talk, StreamingConversation)
    streamed = talk.stream("what is this?", Point(0.5, 0.5), heard.append)
    assert "".join(heard) == streamed.text
    assert look.chat().say("what is this?", Point(0.5, 0.5)).text == streamed.text


def test_a_conversation_remembers_and_says_what_it_forgot(loaded: TraceVlmModel) -> None:
    look = loaded.look(small.photo(1, 1))
    talk = look.chat()
    first = talk.say("what is this?", Point(0.5, 0.5))
    assert first.forgotten == 0
    assert len(talk.turns) == 2
    loaded.network.reader.context, whole = 150, loaded.network.reader.context
    try:
        talk.say("what is that?")
        assert talk.say("and what is there?").forgotten > 0
    finally:
        loaded.network.reader.context = whole
    assert len(talk.turns) == 6


def test_what_was_cut_out_is_remembered_and_the_masks_see_what_the_answer_saw(
    loaded: TraceVlmModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, asked_for = loaded.look(small.photo()), []
    said = [*SEGMENT_TOKENS, "and", "<|box_start|>(1,2),(3,4)<|box_end|>", "<traj>(5,6)</traj>"]
    tokens = tuple(loaded.network.reader.inputs.special[name] for name in SEGMENT_TOKENS)
    monkeypatch.setattr(look, "write", lambda talks, hear: [WrittenAnswer(tokens, "".join(said), 0.0, True, 2)])
    cut = decode.segment
    monkeypatch.setattr(decode, "segment", lambda *given: asked_for.append(given[5]) or cut(*given))
    talk = look.chat()
    talk.turns = [asked("describe"), answered("a cup")]
    talk.say("what is this?", Point(0.5, 0.5))
    kept = talk.turns[-1].parts
    assert [type(part) for part in kept] == [SegmentTarget, str, Box, Trajectory]
    assert asked_for == [2]


def test_words_and_trajectories_become_a_narrative() -> None:
    pieces = parse("a cup <traj>(100,100),(200,200)</traj> on the table <traj>(500,500)</traj>").pieces
    narrative = told(pieces, "139", "model")
    assert narrative.caption == "a cup on the table"
    assert [(u.text, u.start_s, u.end_s) for u in narrative.utterances] == [
        ("a cup", 0.0, 0.8),
        ("on the table", 0.8, 2.0),
    ]
    assert narrative.trace.times_s.tolist() == pytest.approx([0.0, 0.8, 0.8])
