"""The network on its base: at γ = 0 the base itself, with tokens where the base's own processor puts them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from saywhere.core import InvalidFile, InvalidValue, Trace
from saywhere.models.tracevlm.batch import InstructionBatch, collate
from saywhere.models.tracevlm.examples import Exchange, Part, SegmentTarget, answered, asked
from saywhere.models.tracevlm.network import PARTS, TraceVLM
from saywhere.models.tracevlm.qwen import SEGMENT_TOKENS, TRAJECTORY_TOKENS, open_qwen
from saywhere.models.tracevlm.trajectory import Trajectory
from tests.models.tracevlm import small

DRAWN = Trajectory(small.TRACE)
TALK = (asked("caption", DRAWN), answered("a red cup"))
PHOTOS = {"a.png": small.photo(), "b.png": small.photo(60, 90, seed=1)}


@pytest.fixture(scope="module", params=small.KINDS)
def model(request: pytest.FixtureRequest) -> TraceVLM:
    return small.model(request.param)


@pytest.fixture(scope="module")
def one() -> TraceVLM:
    return small.model()


def batch(model: TraceVLM, talk: tuple[Exchange, ...] = TALK, *photos: Any) -> InstructionBatch:
    return collate(model.reader, [talk], [list(photos) or [small.photo()]])


def everything(model: TraceVLM) -> InstructionBatch:
    """A batch of all tasks: texts of all lengths, one photo or two frames each."""
    all_ = small.instructions()
    return collate(model.reader, [one.turns for one in all_], [[PHOTOS[name] for name in one.images] for one in all_])


def image_id(model: TraceVLM) -> int:
    return model.reader.inputs.special["<|image_pad|>"]


def plain_scores(model: TraceVLM, read: InstructionBatch) -> torch.Tensor:
    """Those of the library's own forward pass through the base as it was."""
    base = small.network(model.body.kind)
    kinds = (read.ids == image_id(model)).long()
    inputs = {"input_ids": read.ids, "attention_mask": read.there.long(), "mm_token_type_ids": kinds}
    with torch.no_grad():
        scores: torch.Tensor = base(**inputs, pixel_values=read.pixels, image_grid_thw=read.grids).logits
    return scores


def test_at_gamma_0_the_scores_are_exactly_those_of_the_base(model: TraceVLM) -> None:
    read = everything(model)
    assert int(read.points.counts.sum()) > 0
    with torch.no_grad():
        assert torch.equal(model(read)[read.there], plain_scores(model, read)[read.there])


def test_a_base_in_half_precision_gives_its_own_scores_too() -> None:
    base = open_qwen(small.base(), "bfloat16")
    read = everything(small.model())
    positions, _ = base.positions(read.ids, read.there, read.grids)
    with torch.no_grad():
        plain = base.say(base.read(read.ids, read.there, positions, base.see(read.pixels, read.grids)))
        found = TraceVLM(small.CONFIG, base).eval()(read)
    assert found.dtype == torch.bfloat16
    assert torch.equal(found[read.there], plain[read.there])


def test_trajectories_change_the_scores_of_what_comes_after_the_photo(model: TraceVLM) -> None:
    awake = small.awake(small.model(model.body.kind))
    here, there = (Trajectory(Trace([(x, x, 0.0)])) for x in (0.2, 0.8))
    # Both are drawn, but the text says the same: what differs comes through perception alone.
    reads = [batch(awake, (asked("reason", "what?"), answered("a"))) for _ in range(2)]
    with torch.no_grad():
        seen = awake.body.see(reads[0].pixels, reads[0].grids)
        scores = []
        for drawn in (here, there):
            points = batch(awake, (asked("reason", drawn), answered("a"))).points
            shown, _ = awake.perceive(seen, points)
            positions, _ = awake.body.positions(reads[0].ids, reads[0].there, reads[0].grids)
            scores.append(awake.body.say(awake.body.read(reads[0].ids, reads[0].there, positions, shown)))
    first = int((reads[0].ids[0] == image_id(awake)).nonzero()[0])
    assert torch.equal(scores[0][0, :first], scores[1][0, :first])
    assert not torch.allclose(scores[0][0, -1], scores[1][0, -1])


def test_tokens_stand_where_the_processor_puts_them(model: TraceVLM) -> None:
    read, words = batch(model), model.reader.inputs.tokenizer
    rows, cols = (read.grids[0, 1:] // model.reader.inputs.merge).tolist()
    text = (
        f"<|im_start|>user\n<|vision_start|>{'<|image_pad|>' * (rows * cols)}<|vision_end|>"
        "Describe the image along this trajectory: <traj>(100,200),(500,500),(900,300)</traj><|im_end|>\n"
        "<|im_start|>assistant\na red cup<|im_end|>\n"
    )
    assert read.ids[0].tolist() == words(text)["input_ids"]


def test_only_what_the_assistant_says_and_its_end_is_learnt(one: TraceVLM) -> None:
    talk = (*TALK, asked("dialogue", "where?"), answered(DRAWN))
    read = batch(one, talk)
    said = one.reader.text(read.ids[0][read.learnt[0]].tolist())
    assert said == "a red cup<|im_end|><traj>(100,200),(500,500),(900,300)</traj><|im_end|>"


@pytest.mark.parametrize(
    ("size", "grid"), [((120, 80), (6, 8)), ((80, 120), (8, 6)), ((300, 30), (2, 22)), ((1, 1), (4, 4))]
)
def test_photos_keep_their_aspect(one: TraceVLM, size: tuple[int, int], grid: tuple[int, int]) -> None:
    read = batch(one, TALK, small.photo(*size))
    frame = one.reader.inputs.frame(size, read.grids[0])
    assert tuple(read.grids[0, 1:].tolist()) == grid
    assert frame.grid == (grid[0] // 2, grid[1] // 2)
    assert int((read.ids == image_id(one)).sum()) == frame.rows * frame.cols


def test_a_photo_that_is_a_line_is_refused(one: TraceVLM) -> None:
    with pytest.raises(InvalidValue, match="201×1 is more than 200 times longer"):
        batch(one, TALK, small.photo(201, 1))


def test_points_go_to_the_frame_that_they_are_on(one: TraceVLM) -> None:
    video = Trajectory(small.TRACE, (0, 2, 2))
    read = batch(one, (asked("interpret", video), answered("it moves")), *(small.photo(seed=i) for i in range(3)))
    assert read.points.counts.tolist() == [1, 0, 2]
    assert read.points.rows[2, :2, 0].tolist() == pytest.approx([0.5, 0.9])
    assert read.points.rows[2, :2, 3:].tolist() == [[1, 2], [2, 2]]
    assert "1:<traj>(100,200)</traj>3:<traj>(500,500),(900,300)</traj>" in one.reader.text(read.ids[0].tolist())


def test_frames_that_nobody_points_at_are_seen_as_before(one: TraceVLM) -> None:
    awake = small.awake(small.model())
    video = Trajectory(small.TRACE, (1, 1, 1))
    read = batch(awake, (asked("interpret", video), answered("a")), small.photo(), small.photo(60, 90, seed=1))
    with torch.no_grad():
        seen = awake.body.see(read.pixels, read.grids)
        shown, _ = awake.perceive(seen, read.points)
    assert torch.equal(shown.merged[0], seen.merged[0])
    assert not torch.allclose(shown.merged[1], seen.merged[1])


def test_patches_before_the_merger_lie_in_raster_order(model: TraceVLM) -> None:
    read = batch(model, TALK, small.photo(), small.photo(60, 90, seed=1))
    with torch.no_grad():
        seen = model.body.see(read.pixels, read.grids)
        for patches, merged in zip(seen.patches, seen.merged, strict=True):
            rows, cols, _ = patches.shape
            blocks = patches.view(rows // 2, 2, cols // 2, 2, -1).transpose(1, 2).flatten(0, 3)
            torch.testing.assert_close(small_merger(model)(blocks), merged)


def small_merger(model: TraceVLM) -> Any:
    return model.body.network.model.visual.merger


def test_new_tokens_take_spare_rows_and_the_matrix_keeps_its_size(one: TraceVLM) -> None:
    ids = [one.reader.inputs.special[name] for name in (*TRAJECTORY_TOKENS, *SEGMENT_TOKENS)]
    assert len(set(ids)) == 8
    assert max(ids) < small.ROWS
    assert one.body.network.get_input_embeddings().weight.shape[0] == small.ROWS
    assert one.body.network.lm_head.weight.shape[0] == small.ROWS


def test_without_spare_rows_the_matrix_grows(tmp_path: Path) -> None:
    full = small.network("qwen2_5_vl")
    full.resize_token_embeddings(len(small.tokenizer()))
    small.save_base(tmp_path)
    full.save_pretrained(tmp_path)
    body = open_qwen(tmp_path)
    assert body.network.get_input_embeddings().num_embeddings == len(small.tokenizer()) + 8


@pytest.mark.parametrize(
    "word", ["<traj>", "</traj>", "<seg_0_0>", "<|im_end|>", "<|image_pad|>", "<|im_start|>system\n"]
)
def test_words_that_imitate_special_tokens_stay_words(one: TraceVLM, word: str) -> None:
    tokenizer = one.reader.inputs.tokenizer
    ids, _ = one.reader.parts([word])
    assert not set(ids) & set(tokenizer.all_special_ids)
    assert one.reader.text(ids) == word
    plain, imitating = (batch(one, (asked("reason", text), answered("a"))) for text in ("x", word))
    special = torch.tensor(tokenizer.all_special_ids)
    assert torch.isin(plain.ids, special).sum() == torch.isin(imitating.ids, special).sum()


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (SegmentTarget(), "".join(SEGMENT_TOKENS)),
        (DRAWN, "<traj>(100,200),(500,500),(900,300)</traj>"),
        ("a cup", "a cup"),
    ],
)
def test_parts_are_written_as_they_are_meant(one: TraceVLM, part: Part, text: str) -> None:
    assert one.reader.text(one.reader.parts([part])[0]) == text


def test_the_oldest_turns_go_when_there_is_no_room(one: TraceVLM) -> None:
    talk = [turn for number in range(9) for turn in (asked("dialogue", f"what is {number}?"), answered("a cup"))]
    whole = one.reader.read(talk, [12])
    assert whole.forgotten == 0
    short = type(one.reader)(one.reader.inputs, context=len(whole.ids) - 1).read(talk, [12])
    assert short.forgotten == 2
    assert "what is 0?" not in one.reader.text(short.ids)
    assert "what is 1?" in one.reader.text(short.ids)
    assert sum(token == image_id(one) for token in short.ids) == 12


def test_a_question_longer_than_the_context_is_refused(one: TraceVLM) -> None:
    with pytest.raises(InvalidValue, match="do not fit into 2,048"):
        one.reader.read([asked("reason", "word " * 1000)], [12])


@pytest.mark.parametrize("part", PARTS)
def test_a_part_alone_is_trained(part: str) -> None:
    made = small.awake(small.model())
    made.train_only([part])
    trained = {name for name, parameter in made.named_parameters() if parameter.requires_grad}
    marks = {"trajectory": "trajectory.", "perception": "perception.", "segmentation": "segmentation."}
    marks |= {"tokens": "trainable_tokens_delta", "language": "language_model", "vision": "visual."}
    assert trained
    assert all(marks[part] in name for name in trained)
    assert all((".lora_" in name) == (part in ("language", "vision")) for name in trained)


def test_the_whole_base_can_be_trained_instead_of_adapters() -> None:
    from dataclasses import replace

    made = small.model(config=replace(small.CONFIG, whole_base=True))
    made.train_only(["language", "vision"])
    trained = {name for name, parameter in made.named_parameters() if parameter.requires_grad}
    assert not any(".lora_" in name for name in trained)
    assert any("visual." in name for name in trained)
    assert any("lm_head" in name for name in trained)


def test_tied_embeddings_share_the_rows_of_new_tokens(tmp_path: Path) -> None:
    made = TraceVLM(small.CONFIG, open_qwen(small.save_base(tmp_path, tied=True))).eval()
    assert len(made.parameters_of("tokens")) == 1
    read = batch(made)
    place = (read.ids[0] == made.reader.inputs.special["<traj>"]).nonzero()[0, 0]
    with torch.no_grad():
        before = made(read)
        made.parameters_of("tokens")[0].add_(1.0)
        after = made(read)
    assert not torch.allclose(before[0, place], after[0, place])


def test_a_saved_network_is_the_same_and_holds_nothing_of_its_base(tmp_path: Path) -> None:
    made = small.awake(small.model())
    with torch.no_grad():
        for part in PARTS:
            for parameter in made.parameters_of(part):
                parameter.add_(0.01 * torch.randn_like(parameter))
    made.save_pretrained(tmp_path / "saved")
    read = batch(made)
    loaded = TraceVLM.from_pretrained(tmp_path / "saved")
    with torch.no_grad():
        assert torch.equal(loaded(read), made(read))
    kept = made.own_tensors()
    assert not [
        name for name in kept if name.startswith("body.") and ".lora_" not in name and "trainable_tokens" not in name
    ]


def test_another_base_than_that_of_training_is_refused(tmp_path: Path) -> None:
    folder = small.save_base(tmp_path / "base")
    TraceVLM(small.CONFIG, open_qwen(folder)).save_pretrained(tmp_path / "saved")
    changed = small.network("qwen2_5_vl")
    with torch.no_grad():
        changed.lm_head.weight.add_(1)
    changed.save_pretrained(folder)
    with pytest.raises(InvalidFile, match="is not the base that this model was made from"):
        TraceVLM.from_pretrained(tmp_path / "saved")


def test_what_is_no_qwen_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(InvalidFile, match="holds a 'bert'"):
        open_qwen(tmp_path)


def test_heads_that_do_not_divide_the_base_are_refused() -> None:
    from dataclasses import replace

    with pytest.raises(InvalidValue, match="32 does not divide into 5 heads"):
        small.model(config=replace(small.CONFIG, heads=5))
