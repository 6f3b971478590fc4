"""The small body: what it reads, that it reads the same with and without a cache, and what perception adds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from saywhere.core import Box, InvalidFile, InvalidValue, Trace
from saywhere.models.search import GenerationConfig, Rules, search
from saywhere.models.tracevlm.batch import InstructionBatch, collate_prepared
from saywhere.models.tracevlm.decode import AnswerSteps, write
from saywhere.models.tracevlm.examples import Exchange, answered, asked
from saywhere.models.tracevlm.objective import near_loss
from saywhere.models.tracevlm.parsing import parse
from saywhere.models.tracevlm.small_body import visible
from saywhere.models.tracevlm.small_input import _shares
from saywhere.models.tracevlm.small_model import SmallTraceVLM
from saywhere.models.tracevlm.small_photos import LEAST_SCORE, MOST_THINGS, as_found, of_things, window_states
from saywhere.models.tracevlm.small_tokens import SPECIAL
from saywhere.vision.view import Found
from tests.models.tracevlm import small_body as small

POINTS = small.trajectory((0.1, 0.2), (0.8, 0.9))
TALKS = (
    (asked("caption", POINTS), answered("a dog")),
    (asked("box", "a dog on a couch"), answered(Box(0.1, 0.2, 0.5, 0.9)), asked("describe"), answered("a couch")),
)


def _batch(model: SmallTraceVLM, talks: tuple[tuple[Exchange, ...], ...] = TALKS) -> InstructionBatch:
    photos = [small.photo(number, things=1 + number) for number in range(len(talks))]
    return collate_prepared(model.reader, talks, [1] * len(talks), *model.body.inputs.places(photos))


def test_what_people_type_is_never_a_special_token_or_a_coordinate() -> None:
    tokens = small.tokenizer()
    for text in (*SPECIAL, "<traj>(1,2)</traj>", "<|assistant|> 999", "ein Hund, 犬 🐕", " two  spaces\n"):
        ids = tokens.words(text)
        assert min(ids) >= len(SPECIAL)
        assert max(ids) < tokens.first_coordinate
        assert tokens.text(ids) == text


def test_a_tokenizer_comes_back_from_json_and_one_with_special_tokens_is_refused() -> None:
    tokens = small.tokenizer()
    again = type(tokens).from_json(tokens.to_json())
    assert again.words("a dog <traj>") == tokens.words("a dog <traj>")
    assert len(again) == len(tokens) == len(SPECIAL) + 280 + 1000
    pieces = tokens._pieces
    pieces.add_special_tokens(["<traj>"])
    with pytest.raises(InvalidValue, match="special tokens of its own"):
        type(tokens).from_json(pieces.to_str())
    with pytest.raises(InvalidValue, match="cannot be read"):
        type(tokens).from_json("{")


def test_a_talk_becomes_images_turns_and_what_is_learnt() -> None:
    reader = small.model().reader
    prompt = reader.read([asked("box", "a dog"), answered(Box(0, 0.25, 0.5, 1))], [3])
    said = reader.text(prompt.ids)
    assert said == (
        "<|image_pad|>" * 3 + "<|user|>Put a box around this: a dog<|end|>"
        "<|assistant|><|box_start|>(0,250),(500,999)<|box_end|><|end|>"
    )
    learnt = [number for number, mine in zip(prompt.ids, prompt.learnt, strict=True) if mine]
    assert reader.text(learnt) == "<|box_start|>(0,250),(500,999)<|box_end|><|end|>"


def test_a_long_trajectory_is_read_as_few_points_and_seen_as_all() -> None:
    model = small.model()
    long = small.trajectory(*((0.001 * number, 0.5) for number in range(200)))
    batch = _batch(model, ((asked("caption", long), answered("a dog")),))
    coordinates = int((batch.ids >= model.tokenizer.first_coordinate).sum())
    assert (coordinates, batch.points.counts.tolist()) == (48, [200])


def test_the_oldest_turns_go_when_the_context_is_full() -> None:
    reader = small.model().reader
    turns = [turn for number in range(30) for turn in (asked("reason", f"what is {number}?"), answered("a dog"))]
    prompt = reader.read([*turns, asked("reason", "and this?")], [20], room=40)
    assert prompt.forgotten > 0
    assert prompt.forgotten % 2 == 0
    assert len(prompt.ids) + 40 <= reader.context
    assert reader.text(prompt.ids).endswith("and this?<|end|><|assistant|>")


def test_places_are_the_whole_windows_and_things() -> None:
    model, photo = small.model(), small.photo(things=2)
    places, grids = model.body.inputs.places([photo])
    assert (tuple(places.shape), grids.tolist()) == ((1, 1 + 25 + 2, small.STATE + 7), [[1, 28, 1]])
    # The first window is the mean of the four in the corner; the second thing has class 1, counted from 1.
    corner = photo.windows[1:].reshape(10, 10, -1)[:2, :2].mean(axis=(0, 1))
    assert np.allclose(places[0, 1, : small.STATE], corner, atol=1e-6)
    assert np.allclose(places[0, 1, small.STATE :], [0, 0, 0.2, 0.2, 0, 0, 1])
    assert np.allclose(places[0, 27, small.STATE :], [0.6, 0.1, 0.9, 0.4, 0.5, 2, 2])


def test_a_thing_shows_what_its_box_covers() -> None:
    [shares] = _shares(np.array([(0.05, 0.0, 0.2, 0.1)], np.float32))
    assert np.allclose(shares[:3], [1 / 3, 2 / 3, 0], atol=1e-5)
    assert np.isclose(shares.sum(), 1)


def test_states_are_pooled_in_windows() -> None:
    states = np.arange(401, dtype=np.float32)[:, None]
    pooled = window_states(states)
    assert pooled.shape == (101, 1)
    assert pooled[0, 0] == 0
    assert pooled[1, 0] == np.mean([1, 2, 21, 22])
    with pytest.raises(InvalidValue, match="not one more than a square"):
        window_states(states[:-1])


def test_the_surest_things_are_kept_each_once() -> None:
    found = [Found((0.1, 0.1, 0.5, 0.5), "dog", 0.9), Found((0.1, 0.1, 0.5, 0.52), "dog", 0.8)]
    found += [Found((0.1, 0.1, 0.5, 0.5), "cat", 0.4), Found((0.6, 0.6, 0.9, 0.9), "dog", LEAST_SCORE - 0.01)]
    kept = of_things(small.windows(0), found)
    assert (kept.classes.tolist(), kept.scores.tolist()) == ([16, 15], pytest.approx([0.9, 0.4]))


def test_things_made_worse_stay_boxes_and_depend_on_the_seed_alone() -> None:
    photo = small.photo(things=3)
    made = [as_found(photo, np.random.default_rng(seed)) for seed in range(200)]
    again = as_found(photo, np.random.default_rng(7))
    assert np.array_equal(again.boxes, made[7].boxes)
    assert np.array_equal(again.scores, made[7].scores)
    for one in made:
        assert len(one.boxes) <= MOST_THINGS
        assert (np.diff(one.scores) <= 0).all()
        assert ((one.boxes >= 0) & (one.boxes <= 1)).all()
        assert (one.boxes[:, :2] < one.boxes[:, 2:]).all()
    # Of things this large nearly all are found: their boxes are there, nearly where they were.
    near = [np.abs(one.boxes - photo.boxes[0]).max(axis=1).min() < 0.2 for one in made if len(one.boxes)]
    assert np.mean(near) > 0.8


def test_images_see_each_other_words_see_what_is_before_and_padding_is_not_seen() -> None:
    there = torch.tensor([[True, True, True, True, False]])
    images = torch.tensor([[True, True, False, False, False]])
    expected = [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]
    assert visible(there, images)[0, 0].int().tolist() == expected
    assert visible(there, images[:, -1:])[0, 0].int().tolist() == [[1, 1, 1, 1, 1]]


def test_without_gamma_the_trajectory_changes_nothing_but_its_own_text_and_with_it_it_does() -> None:
    model, batch = small.model(), _batch(small.model())
    plain = small.model(blocks=1)
    plain.perception.blocks = torch.nn.ModuleList()
    with torch.no_grad():
        first = model(batch)
        assert torch.equal(first, plain(batch))
        torch.nn.init.ones_(model.perception.blocks[0].gamma)
        changed = model(batch)
    assert not torch.allclose(first[0], changed[0])
    assert torch.equal(first[1], changed[1])  # nobody points there


def test_padding_changes_nothing() -> None:
    model = small.model()
    batch = _batch(model)
    with torch.no_grad():
        together = model(batch)
        alone = model(_batch(model, TALKS[:1]))
    assert torch.allclose(together[0, : alone.shape[1]], alone[0], atol=1e-5)


def test_reading_step_by_step_is_reading_at_once() -> None:
    model = small.model(seed=3)
    questions = [[asked("caption", POINTS)], [asked("box", "a dog on a couch and a dog")]]
    places, grids = model.body.inputs.places([small.photo(0)])
    with torch.no_grad():
        seen = model.body.see(places, grids)
    written = write(model, seen, questions, GenerationConfig(max_words=12))
    for talk, said in zip(questions, written, strict=True):
        prompt = model.reader.read(talk, [28])
        ids = list(prompt.ids)
        for token in said.tokens:
            batch = collate_prepared(model.reader, [talk], [1], places, grids)
            there = torch.ones(1, len(ids), dtype=torch.bool)
            with torch.no_grad():
                shown, _ = model.perceive(seen, batch.points)
                positions, _ = model.body.positions(torch.tensor([ids]), there, grids)
                scores = model.body.say(model.body.read(torch.tensor([ids]), there, positions, shown))[0, -1]
            scores[list(model.reader.unsayable)] = -torch.inf
            if len(ids) == len(prompt.ids):
                scores[list(model.reader.ends)] = -torch.inf
            assert int(scores.argmax()) == token
            ids.append(token)


def test_beams_keep_their_own_cache() -> None:
    model = small.model(seed=1)
    places, grids = model.body.inputs.places([small.photo(0)])
    ids = torch.tensor([model.reader.read([asked("describe")], [28]).ids])
    with torch.no_grad():
        seen = model.body.see(places, grids)
        steps = AnswerSteps(model, ids, torch.ones_like(ids, dtype=torch.bool), seen)
        rules = Rules(GenerationConfig("beam", beams=3), 6, model.reader.ends, model.reader.unsayable)
        [best] = search(steps, rules)
        tokens = torch.tensor([[*ids[0].tolist(), *best.tokens]])
        there = torch.ones_like(tokens, dtype=torch.bool)
        positions, _ = model.body.positions(tokens, there, grids)
        logs = model.body.say(model.body.read(tokens, there, positions, seen))[0].log_softmax(-1)
    told = [float(logs[ids.shape[1] - 1 + place, token]) for place, token in enumerate(best.tokens)]
    assert sum(told) == pytest.approx(sum(best.logprobs[: len(told)]), abs=1e-3)


def test_malformed_answers_are_read_as_far_as_they_go() -> None:
    reader = small.model().reader
    special, tokens = reader.inputs.special, reader.inputs.tokenizer
    opening, corner = special["<|box_start|>"], tokens.coordinates([(1, 2)])
    half = parse(reader.text([*tokens.words("a dog "), opening, *corner, special["<|box_end|>"]]))
    assert (half.text, half.boxes, half.lost) == ("a dog", (), ("box 1: no two corners",))
    odd = parse(reader.text([special["<traj>"], *corner, tokens.first_coordinate + 7]))
    assert odd.pieces[0].trace is not None
    assert len(odd.pieces[0].trace) == 1
    assert odd.lost == ("trajectory 1: no closing tag", "trajectory 1: malformed points")
    assert parse(reader.text([*corner, special["</traj>"]])).pieces[0].trace is None


def test_near_coordinates_are_half_right() -> None:
    scores = torch.zeros(2, 10)
    scores[1, 6] = 5.0
    tokens = torch.tensor([1, 7])  # a word, and coordinate 2 of 5
    exact = near_loss(scores, tokens, first_coordinate=5, spread=0.0)
    near = near_loss(scores, tokens, first_coordinate=5, spread=1.0)
    assert float(exact) == pytest.approx((np.log(10) + 5 + np.log(np.exp(-5) * 9 + 1)) / 2, abs=1e-5)
    weights = np.exp(-0.5 * (np.arange(5) - 2.0) ** 2)
    expected = np.log(10) + np.log(np.exp(5) + 9) - 5 * (weights / weights.sum())[1]
    assert float(near) == pytest.approx(expected / 2, abs=1e-5)


@pytest.mark.parametrize("int8", [False, True])
def test_a_saved_model_comes_back(tmp_path: Path, int8: bool) -> None:
    model = small.model(seed=5)
    model.save_pretrained(tmp_path, int8=int8)
    again = SmallTraceVLM.from_pretrained(tmp_path)
    batch = _batch(model)
    with torch.no_grad():
        assert torch.allclose(model(batch), again(batch), atol=0.05 if int8 else 0)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InvalidFile, match=r"is not the file that config\.json was written for"):
        SmallTraceVLM.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("points", "counted"),
    [
        ([(0.5, 0.5, 0.0)], 1),
        ([(0.001 * (n % 900), 0.5 + 0.4 * np.sin(n), 0.001 * n) for n in range(10_000)], 256),
        ([(-0.5, 0.5, 0.0), (0.5, 0.5, 1.0), (1.5, 2.0, 2.0)], 3),
    ],
    ids=["one point", "ten thousand points", "points outside"],
)
def test_odd_trajectories_are_read(points: list[tuple[float, float, float]], counted: int) -> None:
    from saywhere.core import Frame
    from saywhere.models.tracevlm.trajectory import of_region

    model = small.model()
    drawn = of_region(Trace(points), Frame.squash((640, 480), (280, 280), 7))
    assert drawn is not None
    assert len(drawn.trace) <= counted
    batch = _batch(model, ((asked("caption", drawn), answered("a dog")),))
    with torch.no_grad():
        assert bool(torch.isfinite(model(batch)).all())


def test_a_trajectory_that_goes_back_in_time_is_refused_with_the_point() -> None:
    with pytest.raises(InvalidValue, match="time"):
        Trace([(0.1, 0.1, 1.0), (0.2, 0.2, 0.5)])
