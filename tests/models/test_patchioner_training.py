"""Training the decoder on text alone and the alignment on pairs: data, objective, tasks."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from saywhere.core import InvalidFile, InvalidValue
from saywhere.language.vocabulary import BEGIN_ID, END_ID, PAD_ID, Vocabulary
from saywhere.learn import Event, StepDone, Task, evaluate, find_checkpoint, load_recipe, make_task, train
from saywhere.models.patchioner.alignment import LinearAlignment, Talk2DinoAlignment, contrast
from saywhere.models.patchioner.data import Pairs, Texts, prepare_texts, save_pairs, save_texts
from saywhere.models.patchioner.decoder import PrefixDecoder
from saywhere.models.patchioner.objective import Bank, TextObjective, collate, noisy, projected, seen_as
from saywhere.store import is_finished
from tests.models.patchioner_small import SENTENCES, SIZE, decoder, embeddings, vectors, vocabulary


class Encoder:
    name, size, fingerprint = "made up", SIZE, {"encoder": "made up"}

    def embed(self, texts: list[str], *, batch: int = 64, progress: object = None) -> np.ndarray:
        return embeddings(SENTENCES)[[SENTENCES.index(text) for text in texts]]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    prompts = [f"{sentence.split()[2]} " * (i % 3) for i, sentence in enumerate(SENTENCES)]
    groups = np.arange(len(SENTENCES)) // 2
    save_texts(
        tmp_path / "texts", SENTENCES, embeddings(SENTENCES), vocabulary(), {"by": "me"}, groups=groups, prompts=prompts
    )
    return tmp_path / "texts"


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    meant, owners = rng.standard_normal((16, SIZE)), np.arange(48) // 3
    said = meant[owners] + 0.2 * rng.standard_normal((48, SIZE))
    seen = meant @ rng.standard_normal((SIZE, 10))
    several = 5 + seen[:, None] + 0.1 * rng.standard_normal((16, 3, 10))
    save_pairs(tmp_path / "pairs", several, said, owners, {})
    return tmp_path / "pairs"


def recipe(folder: Path, task: str, model: str, held_out: int, steps: int = 8) -> Path:
    path = folder.parent / f"{task}.toml"
    path.write_text(
        f'name = "tiny"\ntask = "{task}"\nseed = 3\n[model]\n{model}\n[data]\nfolder = "{folder}"\n'
        f"held_out = {held_out}\n[train]\nsteps = {steps}\nbatch_size = 8\nlr = 1e-2\nnum_threads = 1\n"
        '[validate]\nevery_steps = 4\nmetric = "loss"\n[checkpoint]\nevery_steps = 3\n[log]\nplot = false\n'
    )
    return path


TINY = "width = 16\nlayers = 1\nheads = 2\nfeed_forward = 32\nmax_words = 9"


def test_prepared_texts_come_back_as_they_were(texts: Path) -> None:
    found = Texts(texts)
    assert (len(found), found.size, found.about, found.longest_prompt) == (len(SENTENCES), SIZE, {"by": "me"}, 2)
    for i in (0, 5, len(SENTENCES) - 1):
        assert found.vocabulary.text(found[i].ids.tolist()) == SENTENCES[i]
        assert len(found[i].prompt) == i % 3
        assert found[i].group == i // 2
        np.testing.assert_allclose(found[i].vector, embeddings(SENTENCES)[i], atol=1e-3)
    part = found.part(range(10, 20)).part(range(2, 5))
    assert [part.vocabulary.text(item.ids.tolist()) for item in part[:]] == SENTENCES[12:15]


def test_embedding_here_or_before_gives_the_same_folder(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    prepare_texts(SENTENCES, Encoder(), vocabulary(), tmp_path / "a", lambda _, *done: told.append(done))
    save_texts(tmp_path / "b", SENTENCES, 3 * embeddings(SENTENCES), vocabulary(), {})
    assert told == [(len(SENTENCES), len(SENTENCES))]
    assert Texts(tmp_path / "a").about == {"encoder": {"encoder": "made up"}}
    for one, other in zip(Texts(tmp_path / "a"), Texts(tmp_path / "b"), strict=True):
        np.testing.assert_array_equal(one.ids, other.ids)
        np.testing.assert_allclose(one.vector, other.vector, atol=1e-3)


def test_the_fingerprint_changes_with_any_text_and_any_vector(tmp_path: Path) -> None:
    base = embeddings(SENTENCES)
    moved = base.copy()
    moved[-1, 0] += 0.1
    known = vocabulary()
    others = [(SENTENCES, base), (SENTENCES, moved), ([*SENTENCES[1:], SENTENCES[0]], base), (SENTENCES, 2 * base)]
    marks = []
    for i, (sentences, rows) in enumerate(others):
        save_texts(tmp_path / str(i), sentences, rows, known, {})
        marks.append(Texts(tmp_path / str(i)).fingerprint)
    assert len({*marks[:3]}) == 3


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda f: save_texts(f, [], np.empty((0, 3)), vocabulary(), {}), "none to prepare"),
        (lambda f: save_texts(f, ["a cat", " "], np.ones((2, 3)), vocabulary(), {}), "sentence 1: ' ' has no words"),
        (lambda f: save_texts(f, ["a cat"], np.ones((2, 3)), vocabulary(), {}), "for 1 sentences"),
        (lambda f: save_texts(f, ["a", "cat"], np.zeros((2, 3)), vocabulary(), {}), "vector 0: is zero"),
        (lambda f: save_texts(f, ["a"], [[np.nan]], vocabulary(), {}), "vector 0: is zero or holds NaN"),
        (lambda f: save_texts(f, ["a"], [[1.0]], vocabulary(), {}, groups=[0.5]), "whole numbers"),
        (lambda f: save_texts(f, ["a"], [[1.0]], vocabulary(), {}, prompts=[]), "0 for 1 sentences"),
        (lambda f: save_pairs(f, np.ones(3), np.ones((1, 3)), [0], {}), "not .photos, d."),
        (lambda f: save_pairs(f, np.ones((2, 3)), np.ones((2, 3)), [0, 0], {}), "each of 2 photos"),
        (lambda f: save_pairs(f, np.ones((2, 3)), np.ones((2, 3)), [0, 2], {}), "each of 2 photos"),
        (
            lambda f: save_pairs(f, np.full((1, 3), 1e6), np.ones((1, 3)), [0], {}),
            "feature of row .0.: holds numbers beyond",
        ),
    ],
)
def test_data_that_cannot_be_is_named(tmp_path: Path, work: Callable[[Path], object], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        work(tmp_path / "data")
    assert not is_finished(tmp_path / "data")


def test_a_folder_that_was_not_finished_or_holds_something_else_is_refused(texts: Path, pairs: Path) -> None:
    with pytest.raises(InvalidFile, match="holds pairs, not texts"):
        Texts(pairs)
    (texts / "index.json").unlink()
    with pytest.raises(InvalidFile, match="not a folder of prepared texts"):
        Texts(texts)


def test_a_batch_holds_prompt_begin_text_and_end(texts: Path) -> None:
    found = Texts(texts)
    batch = collate([found[1], found[2]], max_words=7, prompted=[False, True])
    first, second = (list(found[i].ids) for i in (1, 2))
    prompt = list(found[2].prompt)
    assert batch.words[0].tolist() == [BEGIN_ID, *first, END_ID, PAD_ID, PAD_ID]
    assert batch.words[1].tolist() == [*prompt, BEGIN_ID, *second, END_ID]
    assert batch.target_count == 2 * (7 + 1)
    cut = collate([found[1]], max_words=4)
    assert cut.words[0].tolist() == [BEGIN_ID, *first[:4]]


def test_noise_has_the_spread_asked_for_and_the_result_length_one() -> None:
    rows = torch.zeros(2000, 50)
    rows[:, 0] = 1
    fixed = noisy(rows, (0.1, 0.1), torch.Generator().manual_seed(0))
    torch.testing.assert_close(fixed.norm(dim=1), torch.ones(2000))
    assert float((fixed[:, 1:] / fixed[:, :1]).std()) == pytest.approx(0.1, rel=0.1)
    ranged = noisy(rows, (0.0, 0.1), torch.Generator().manual_seed(0))
    spreads = ranged[:, 1:].std(dim=1)
    assert float(spreads.min()) < 0.01
    assert float(spreads.max()) > 0.07
    torch.testing.assert_close(noisy(rows * 5, (0.0, 0.0), torch.Generator()), rows)


def test_projection_is_the_weighted_mean_of_the_texts_of_other_groups() -> None:
    bank_rows = vectors(6, seed=1)
    bank_rows /= np.linalg.norm(bank_rows, axis=1, keepdims=True)
    bank = Bank(torch.from_numpy(bank_rows), torch.tensor([0, 0, 1, 1, 2, 2]))
    rows, groups = vectors(2), torch.tensor([1, 7])
    found = projected(torch.from_numpy(rows), groups, bank, 0.1).numpy()
    for row, group, result in zip(rows, groups.tolist(), found, strict=True):
        others = bank_rows[np.array([0, 0, 1, 1, 2, 2]) != group]
        weights = np.exp(others @ (row / np.linalg.norm(row)) / 0.1)
        expected = weights @ others
        np.testing.assert_allclose(result, expected / np.linalg.norm(expected), atol=1e-5)
    with pytest.raises(InvalidValue, match="only texts of one group"):
        projected(torch.from_numpy(rows), groups, Bank(bank.vectors[2:4], bank.groups[2:4]), 0.1)


def test_as_many_vectors_are_projected_as_asked(texts: Path) -> None:
    found = Texts(texts)
    batch = collate(found[:], max_words=9)
    rows, groups = found.bank(20, np.random.default_rng(0))
    assert len(rows) == 20
    bank = Bank(torch.from_numpy(rows), torch.from_numpy(groups))
    for rate in (0.0, 0.4, 1.0):
        seen = seen_as(batch, TextObjective((0.0, 0.0), project_rate=rate), bank, torch.Generator().manual_seed(0))
        changed = ((seen - batch.vectors).abs().amax(dim=1) > 1e-2).float().mean()
        assert float(changed) == pytest.approx(rate, abs=0.15)


@pytest.mark.parametrize("settings", [{"noise": (0.2, 0.1)}, {"project_rate": 2.0}, {"temperature": 0.0}])
def test_an_objective_that_makes_no_sense_is_refused(settings: dict[str, object]) -> None:
    with pytest.raises(InvalidValue):
        TextObjective(**settings)  # type: ignore[arg-type]


def learn(task: Task, steps: int) -> torch.nn.Module:
    """Some steps on all training items at once, without the trainer's bookkeeping."""
    model = task.build(torch.Generator().manual_seed(0)).train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    items = task.train_items()
    batch = task.collate([items[i] for i in range(len(items))], torch.Generator().manual_seed(0))
    draw = torch.Generator().manual_seed(0)
    for _ in range(steps):
        optimizer.zero_grad()
        task.losses(model, batch, draw)["loss"].backward()
        optimizer.step()
    return model.eval()


def test_the_decoder_learns_to_say_what_it_is_given(texts: Path) -> None:
    quiet = "\nnoise = [0.0, 0.02]\ndropout = 0.0\nsmoothing = 0.0"
    model = learn(make_task(load_recipe(recipe(texts, "patchioner-decoder", TINY + quiet, 4))), 120)
    assert isinstance(model, PrefixDecoder)
    said = [one.text for one in model.write(embeddings(SENTENCES)[:44])]
    assert sum(a == b for a, b in zip(said, SENTENCES, strict=False)) > 15


ROWS = [
    ("patchioner-decoder", TINY + "\nproject_rate = 0.5\nbank = 30\nprompt_rate = 0.5\nprompt_words = 2", 6),
    ("patchioner-alignment", "dropout = 0.2\ncaptions = 2", 4),
    ("patchioner-alignment", 'form = "talk2dino"', 4),
]


@pytest.mark.parametrize(("task", "model", "held_out"), ROWS)
def test_a_resumed_run_ends_bit_for_bit_as_one_never_stopped(
    texts: Path, pairs: Path, tmp_path: Path, task: str, model: str, held_out: int
) -> None:
    path = recipe(texts if task.endswith("decoder") else pairs, task, model, held_out)

    def stop(event: Event) -> None:
        if isinstance(event, StepDone) and event.step == 5:
            os.kill(os.getpid(), signal.SIGINT)

    assert train(path, tmp_path / "whole").status == "finished"
    assert train(path, tmp_path / "cut", on_event=stop).status == "interrupted"
    assert train(path, tmp_path / "cut").status == "finished"
    ends = [load_file(find_checkpoint(tmp_path / run, "last") / "model.safetensors") for run in ("whole", "cut")]
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])
    begun = make_task(load_recipe(path)).build(torch.Generator().manual_seed(0)).state_dict()
    assert not all(torch.equal(begun[name], ends[0][name]) for name in begun)
    metrics = evaluate(tmp_path / "whole", "last")["metrics"]
    assert set(metrics) == ({"loss", "projected"} if "project" in model else {"loss", *_RECALLS})


_RECALLS = ("recall_1", "recall_5", "recall_10")


def test_validation_texts_of_another_vocabulary_are_refused(texts: Path, tmp_path: Path) -> None:
    save_texts(tmp_path / "other", ["a cat"], np.ones((1, SIZE)), Vocabulary.of_words(["a cat"]), {})
    path = recipe(texts, "patchioner-decoder", TINY, 4)
    with pytest.raises(InvalidValue, match="another vocabulary"):
        make_task(load_recipe(path, [f'data.validation="{tmp_path / "other"}"']))
    save_texts(tmp_path / "good", SENTENCES[:3], embeddings(SENTENCES)[:3], vocabulary(), {})
    task = make_task(load_recipe(path, [f'data.validation="{tmp_path / "good"}"']))
    assert len(task.train_items()) == len(SENTENCES)
    with torch.no_grad():
        assert task.validate(decoder())["loss"] > 0


@pytest.mark.parametrize(
    ("task", "model", "held_out", "message"),
    [
        ("patchioner-decoder", TINY, 48, "held_out"),
        ("patchioner-decoder", TINY + "\nprompt_rate = 0.5", 4, "prompt_words is 0"),
        ("patchioner-alignment", "", 15, "held_out"),
    ],
)
def test_a_recipe_that_does_not_fit_its_data_is_refused(
    texts: Path, pairs: Path, task: str, model: str, held_out: int, message: str
) -> None:
    path = recipe(texts if task.endswith("decoder") else pairs, task, model, held_out)
    with pytest.raises(InvalidValue, match=message):
        make_task(load_recipe(path))


def test_an_unknown_form_of_alignment_is_refused(pairs: Path) -> None:
    with pytest.raises(InvalidFile, match="talk2dino"):
        load_recipe(recipe(pairs, "patchioner-alignment", 'form = "talk2dyno"', 4))


@pytest.mark.parametrize("model", ["dropout = 0.0", 'form = "talk2dino"', 'form = "talk2dino"\npool = "mean"'])
def test_alignment_brings_photos_to_their_texts(pairs: Path, model: str) -> None:
    task = make_task(load_recipe(recipe(pairs, "patchioner-alignment", model, 2)))
    with torch.no_grad():
        start = task.validate(task.build(torch.Generator().manual_seed(0)).eval())
    network, data = learn(task, 60), Pairs(pairs)
    with torch.no_grad():
        found = task.validate(network)
        seen = np.stack([data.feature(photo) for photo in range(16)])
        told = np.concatenate([data.texts_of(photo) for photo in range(16)])
        cosines = network.similarities(torch.from_numpy(seen), torch.from_numpy(told))
    right = cosines.argmax(dim=0) == torch.arange(48) // 3
    assert float(right[:42].float().mean()) > 0.9
    assert found["loss"] < start["loss"]
    assert found["recall_5"] == 100.0


def test_contrast_is_info_nce_both_ways() -> None:
    draw = torch.Generator().manual_seed(0)
    cosines, owners = torch.randn(3, 5, generator=draw), torch.tensor([0, 0, 1, 2, 2])
    terms = []
    for text, photo in enumerate(owners.tolist()):
        scores = (4 * cosines).double().numpy()
        terms.append(-np.log(np.exp(scores[photo, text]) / np.exp(scores[:, text]).sum()) / 2)
        rivals = [other for other in range(5) if owners[other] != photo or other == text]
        terms.append(-np.log(np.exp(scores[photo, text]) / np.exp(scores[photo, rivals]).sum()) / 2)
    assert float(contrast(cosines, owners, torch.tensor(4.0))) == pytest.approx(sum(terms) / 5, rel=1e-5)


def test_statistics_are_those_of_the_training_photos(pairs: Path) -> None:
    data = Pairs(pairs)
    mean, scale = data.statistics(range(9))
    rows = np.concatenate([data.feature(photo) for photo in range(9)]).astype(np.float64)
    np.testing.assert_allclose(mean, rows.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(scale, rows.std(axis=0), rtol=1e-3)


def linear() -> LinearAlignment:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return LinearAlignment(np.arange(10.0), np.arange(1.0, 11), SIZE, dropout=0.5)


def test_a_mean_of_patches_goes_where_the_mean_of_the_aligned_patches_is() -> None:
    model, patches = linear().train(), vectors(12, size=10).reshape(3, 4, 10)
    aligned = model.patches(patches)
    assert aligned.shape == (3, 4, SIZE)
    np.testing.assert_allclose(model.patches(patches.mean(axis=(0, 1))), aligned.mean(axis=(0, 1)), atol=1e-5)
    weight, bias = model.linear.weight.detach().numpy(), model.linear.bias.detach().numpy()
    expected = (patches - np.arange(10.0)) / np.arange(1.0, 11) @ weight.T + bias
    np.testing.assert_allclose(aligned, expected, atol=1e-5)


def test_talk2dino_takes_texts_to_the_features(tmp_path: Path) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Talk2DinoAlignment(SIZE, 10, "max")
    rows = vectors(3)
    a, b = model.first, model.second
    hidden = np.tanh(rows @ a.weight.detach().numpy().T + a.bias.detach().numpy())
    expected = hidden @ b.weight.detach().numpy().T + b.bias.detach().numpy()
    np.testing.assert_allclose(model.texts(rows), expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-5)
    features = vectors(8, size=10).reshape(2, 4, 10)
    np.testing.assert_array_equal(model.patches(features), features)
    units = features / np.linalg.norm(features, axis=-1, keepdims=True)
    most = (units @ model.texts(rows).T).max(axis=1)
    found = model.similarities(torch.from_numpy(features), torch.from_numpy(rows)).detach().numpy()
    np.testing.assert_allclose(found, most, atol=1e-5)
    model.save_pretrained(tmp_path)
    np.testing.assert_array_equal(Talk2DinoAlignment.from_pretrained(tmp_path).texts(rows), model.texts(rows))
    with pytest.raises(InvalidFile, match="describes 'patchioner-talk2dino-alignment'"):
        LinearAlignment.from_pretrained(tmp_path)


@pytest.mark.parametrize("half", [False, True])
def test_a_saved_alignment_comes_back(tmp_path: Path, half: bool) -> None:
    model, rows = linear(), vectors(3, size=10)
    model.save_pretrained(tmp_path, half=half)
    again = LinearAlignment.from_pretrained(tmp_path)
    np.testing.assert_allclose(again.patches(rows), model.patches(rows), atol=2e-2 if half else 0)


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda: LinearAlignment([0, 0], [1, 0], 3), "not > 0"),
        (lambda: linear().patches(np.ones((2, 3))), "not .m, 10."),
        (lambda: linear().texts(np.ones((2, 3))), "not .m, 12."),
        (lambda: Talk2DinoAlignment(3, 4, "some"), "not 'max' or 'mean'"),
        (lambda: Talk2DinoAlignment(3, 4).patches(np.ones((2, 3))), "not .…, 4."),
    ],
)
def test_alignments_name_what_does_not_fit(work: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        work()
