"""The prefix decoder: what it reads, what it writes, how it is kept."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from saywhere.core import InvalidFile, InvalidValue, UnknownName
from saywhere.language.vocabulary import BEGIN_ID, END_ID, PAD_ID
from saywhere.models.patchioner.decoder import DecoderConfig, GenerationConfig, PrefixDecoder, Written
from tests.models.patchioner_small import SIZE, decoder, vectors, vocabulary

ALL = [
    GenerationConfig(),
    GenerationConfig("beam", beams=3),
    GenerationConfig("beam", beams=4, length_penalty=0.0, no_repeat=2),
    GenerationConfig("nucleus", seed=4),
    GenerationConfig(no_repeat=1, min_words=3),
]


def words(model: PrefixDecoder, text: str) -> list[int]:
    return [BEGIN_ID, *model.vocabulary.encode(text.split()).ids, END_ID]


def uncached_logprobs(model: PrefixDecoder, vector: np.ndarray, text: str, ended: bool) -> list[float]:
    """Log-probabilities of a text's pieces by the plain forward pass."""
    row = torch.tensor([words(model, text) if ended else words(model, text)[:-1]])
    with torch.no_grad():
        scores = model(torch.from_numpy(vector[None]), row[:, :-1]).log_softmax(dim=-1)
    return scores[0].gather(1, row[0, 1:, None] - END_ID)[:, 0].tolist()


@pytest.mark.parametrize("how", ALL)
def test_cached_writing_scores_as_the_plain_forward_pass_does(how: GenerationConfig) -> None:
    model, rows = decoder(), vectors(6)
    for vector, one in zip(rows, model.write(rows, how), strict=True):
        expected = uncached_logprobs(model, vector, one.text, one.ended)
        np.testing.assert_allclose(one.token_logprobs, expected, atol=2e-5)
        assert one.score == pytest.approx(np.mean(expected), abs=2e-5)


@pytest.mark.parametrize("how", ALL)
def test_a_vector_gets_the_same_words_alone_and_in_a_batch(how: GenerationConfig) -> None:
    model, rows = decoder(), vectors(9)
    together = model.write(rows, how)
    assert len({one.text for one in together}) > 2
    for i, one in enumerate(together):
        alone = model.write(rows[i : i + 1], how)[0]
        assert (alone.text, alone.ended) == (one.text, one.ended)
        assert alone.score == pytest.approx(one.score, abs=1e-5)


def test_greedy_takes_the_likeliest_word_at_every_place() -> None:
    model, rows = decoder(), vectors(4)
    for vector, one in zip(rows, model.write(rows), strict=True):
        read = [BEGIN_ID]
        for _ in range(model.config.max_words):
            with torch.no_grad():
                scores = model(torch.from_numpy(vector[None]), torch.tensor([read]))[0, -1]
            scores[model.vocabulary.unknown_id - END_ID] = -math.inf
            if len(read) == 1:
                scores[0] = -math.inf
            read.append(int(scores.argmax()) + END_ID)
            if read[-1] == END_ID:
                break
        assert one.text == model.vocabulary.text([i for i in read[1:] if i != END_ID])


def test_a_run_of_words_does_not_come_twice_if_that_is_forbidden() -> None:
    model, rows = decoder(), vectors(12)
    with torch.no_grad():
        model.words.weight[END_ID] = 0

    def repeats(texts: list[Written], run: int) -> int:
        split = [one.text.replace(".", " .").split() for one in texts]
        runs = [[tuple(w[i : i + run]) for i in range(len(w) - run + 1)] for w in split]
        return sum(len(r) - len(set(r)) for r in runs)

    assert repeats(model.write(rows), 3) > 0
    assert repeats(model.write(rows, GenerationConfig(no_repeat=3)), 3) == 0
    assert repeats(model.write(rows, GenerationConfig("beam", beams=2, no_repeat=3)), 3) == 0


def test_the_unknown_word_is_never_said_and_no_text_is_empty() -> None:
    model, rows = decoder(), vectors(8)
    with torch.no_grad():
        model.words.weight[model.vocabulary.unknown_id] *= 50
        model.words.weight[END_ID] *= 50
    for how in (GenerationConfig(), GenerationConfig("beam"), GenerationConfig("nucleus")):
        texts = [one.text for one in model.write(rows, how)]
        assert all(texts)
        assert not any("<unk>" in text for text in texts)


def test_sampling_follows_the_seed_and_keeps_to_the_likeliest_words() -> None:
    model, rows = decoder(), vectors(8)
    first, again, other = (model.write(rows, GenerationConfig("nucleus", seed=s)) for s in (1, 1, 2))
    assert first == again
    assert [one.text for one in first] != [one.text for one in other]
    narrow = model.write(rows, GenerationConfig("nucleus", top_p=1e-9))
    assert [one.text for one in narrow] == [one.text for one in model.write(rows)]


def test_several_texts_are_drawn_as_write_draws_them_one_seed_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, rows, how = decoder(), vectors(5), GenerationConfig("nucleus", seed=4, temperature=1.5)
    drawn = model.draw(rows, 3, how)
    assert len({one.text for texts in drawn for one in texts}) > 5
    for seed in range(3):
        alone = model.write(rows, replace(how, seed=4 + seed))
        assert [texts[seed].text for texts in drawn] == [one.text for one in alone]
        assert [texts[seed].score for texts in drawn] == pytest.approx([one.score for one in alone], abs=1e-5)
    # No more than seven at once: two vectors, three texts each.
    monkeypatch.setattr("saywhere.models.patchioner.decoder._ROWS", 7)
    assert [[one.text for one in texts] for texts in model.draw(rows, 3, how)] == [
        [one.text for one in texts] for texts in drawn
    ]


@pytest.mark.parametrize("careful", [GenerationConfig(), GenerationConfig("beam", beams=3)], ids=["greedy", "beam"])
def test_careful_and_drawn_texts_are_the_same_together_as_each_for_itself(careful: GenerationConfig) -> None:
    model, drawing = decoder(), GenerationConfig("nucleus", top_p=0.9, temperature=1.5, seed=3)
    written, drawn = model.write_and_draw(vectors(3), careful, 4, drawing)
    for ours, alone in zip(written, model.write(vectors(3), careful), strict=True):
        assert ours.text == alone.text
        assert ours.token_logprobs == pytest.approx(alone.token_logprobs, abs=1e-5)
    for some, others in zip(drawn, model.draw(vectors(3), 4, drawing), strict=True):
        assert [one.text for one in some] == [one.text for one in others]
    with pytest.raises(InvalidValue, match="leaves nothing to chance"):
        model.write_and_draw(vectors(1), drawing, 4, drawing)


def test_what_is_drawn_does_not_depend_on_neighbours_nor_on_how_much_is_drawn() -> None:
    model, rows, how = decoder(), vectors(4), GenerationConfig("nucleus")
    together = [[one.text for one in texts] for texts in model.draw(rows[::-1], 5, how)][::-1]
    for row, texts in zip(rows, together, strict=True):
        assert [one.text for one in model.draw(row[None], 2, how)[0]] == texts[:2]
    # Among others a vector is rounded otherwise; its last digits must not draw other texts.
    for close in (rows * (1 + 1e-6), np.nextafter(rows, 1)):
        assert [[one.text for one in texts] for texts in model.draw(close, 5, how)] == together
        assert [one.text for one in model.write(close, how)] == [texts[0] for texts in together]
    assert model.draw(np.empty((0, SIZE)), 3, how) == []


def test_prompts_of_different_lengths_do_not_leak_into_each_other() -> None:
    model, rows = decoder(prompt_words=6), vectors(5)
    prompts = ["a cat", "", "a red dog on a boat", "a cup", ""]
    together = model.write(rows, prompts=prompts)
    assert [model.write(rows[i : i + 1], prompts=prompts[i : i + 1])[0].text for i in range(5)] == [
        one.text for one in together
    ]
    assert [one.text for one in together] != [one.text for one in model.write(rows)]
    assert together[1].text == model.write(rows)[1].text


def test_a_second_vector_changes_what_is_written() -> None:
    model, rows = decoder(extra_size=3), vectors(5)
    zero, ones = (model.write(rows, extra=np.full((5, 3), value)) for value in (0.0, 3.0))
    assert [one.text for one in zero] != [one.text for one in ones]
    with pytest.raises(InvalidValue, match="vectors of 3 numbers"):
        model.write(rows)
    with pytest.raises(InvalidValue, match="there are 4 for 5 vectors"):
        model.write(rows, extra=np.zeros((4, 3)))


def test_the_length_of_a_vector_does_not_matter() -> None:
    model, rows = decoder(), vectors(5)
    assert [one.text for one in model.write(rows)] == [one.text for one in model.write(rows * 37)]


def test_padding_changes_nothing_of_what_is_read() -> None:
    model = decoder()
    rows = torch.from_numpy(vectors(2))
    short, long = words(model, "a red cat"), words(model, "a blue dog on a boat.")
    padded = torch.tensor([short + [PAD_ID] * (len(long) - len(short)), long])
    with torch.no_grad():
        together, alone = model(rows, padded), model(rows[:1], torch.tensor([short]))
    torch.testing.assert_close(together[:1, : len(short)], alone, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_the_mean_over_the_words_of_all_texts_and_their_ends(smoothing: float) -> None:
    model = decoder(prompt_words=3)
    rows = torch.from_numpy(vectors(2))
    prompt = list(model.vocabulary.encode(["boat", "cup"]).ids)
    texts = [[*prompt, *words(model, "a red cat")], words(model, "a blue dog on a boat.")]
    longest = max(map(len, texts))
    padded = torch.tensor([text + [PAD_ID] * (longest - len(text)) for text in texts])
    terms = []
    for row, text in zip(rows, texts, strict=True):
        begin = text.index(BEGIN_ID)
        scores = model(row[None], torch.tensor([text[:-1]]))[0, begin:]
        said = torch.tensor(text[begin + 1 :]) - END_ID
        terms += functional.cross_entropy(scores, said, label_smoothing=smoothing, reduction="none").tolist()
    assert len(terms) == 4 + 8
    loss = model.loss(rows, padded, smoothing=smoothing).detach()
    assert float(loss) == pytest.approx(np.mean(terms), rel=1e-5)


def test_nothing_over_words_and_places_is_kept_by_a_beam() -> None:
    from bench.bench_mitr import Watch

    model, rows = decoder(), vectors(7)
    with torch.no_grad():
        model.words.weight[END_ID] = 0
    with Watch(model.config.words + 1) as watch:
        model.write(rows, GenerationConfig("beam", beams=3))
    # The table of words, seen from the side, is as wide as scores are.
    kept = watch.most - model.words.weight.numel()
    assert 0 < kept <= 4 * 7 * 3 * (model.config.words + 1)


def test_no_vectors_give_no_texts() -> None:
    assert decoder().write(np.empty((0, SIZE))) == []


@pytest.mark.parametrize(
    ("work", "error", "message"),
    [
        (lambda model: model.write(np.zeros((2, 5))), InvalidValue, r"shape \(2, 5\), not \(m, 12\)"),
        (lambda model: model.write(np.full((2, SIZE), np.nan)), InvalidValue, "row 0 holds NaN"),
        (lambda model: model.write(vectors(2), prompts=["a"]), InvalidValue, "1 for 2 vectors"),
        (lambda model: model.write(vectors(1), prompts=["a"]), InvalidValue, "learnt with up to 0"),
        (lambda model: model.write(vectors(1), GenerationConfig(max_words=10)), InvalidValue, "made for 9"),
        (lambda model: model.draw(vectors(1), 2, GenerationConfig("beam")), InvalidValue, "drawn by 'nucleus'"),
        (lambda model: model.draw(vectors(1), 0, GenerationConfig("nucleus")), InvalidValue, "not at least 1"),
        (lambda model: model.draw(np.zeros((2, 5)), 2, GenerationConfig("nucleus")), InvalidValue, "shape"),
        (lambda model: GenerationConfig("greddy"), UnknownName, "Did you mean 'greedy'"),
        (lambda model: GenerationConfig(top_p=0), InvalidValue, "top_p"),
        (lambda model: GenerationConfig(beams=0), InvalidValue, "not positive"),
        (lambda model: DecoderConfig(10, 4, width=6, heads=4), InvalidValue, "does not divide"),
        (lambda model: DecoderConfig(10, 4, dropout=1.0), InvalidValue, "not in"),
        (lambda model: PrefixDecoder(DecoderConfig(3, 4), vocabulary()), InvalidValue, "config says 3"),
    ],
)
def test_what_cannot_be_is_named(work: Callable[[PrefixDecoder], object], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        work(decoder())


def test_a_network_whose_weights_are_nan_says_so() -> None:
    model = decoder()
    with torch.no_grad():
        model.norm.weight[0] = math.nan
    for how in (GenerationConfig(), GenerationConfig("beam")):
        with pytest.raises(InvalidValue, match="NaN"):
            model.write(vectors(1), how)


@pytest.mark.parametrize("half", [False, True])
def test_a_saved_decoder_comes_back_and_writes_the_same(tmp_path: Path, half: bool) -> None:
    model = decoder(prompt_words=3)
    model.save_pretrained(tmp_path / "decoder", half=half)
    again = PrefixDecoder.from_pretrained(tmp_path / "decoder")
    assert (again.config, again.vocabulary, again.training) == (model.config, model.vocabulary, False)
    for name, tensor in again.state_dict().items():
        assert tensor.dtype == torch.float32
        expected = model.state_dict()[name]
        torch.testing.assert_close(tensor, expected.half().float() if half else expected, rtol=0, atol=0)
    whole = sum(parameter.numel() for parameter in model.parameters()) * (2 if half else 4)
    assert (tmp_path / "decoder" / "model.safetensors").stat().st_size == pytest.approx(whole, rel=0.25)


def _changed(path: Path, change: Callable[[dict[str, dict[str, object]]], object]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda f: (f / "vocabulary.json").write_text("{}"), "not the file that config.json was written for"),
        (lambda f: (f / "vocabulary.json").unlink(), "cannot be opened"),
        (lambda f: (f / "model.safetensors").write_bytes(b"x"), "was the save cut off"),
        (lambda f: (f / "config.json").write_text("{"), "not JSON"),
        (lambda f: (f / "config.json").write_text("[]"), "not a JSON object"),
        (lambda f: _changed(f / "config.json", lambda c: c.update(model="mitr")), "describes 'mitr'"),
        (lambda f: _changed(f / "config.json", lambda c: c["config"].update(layers=5)), "does not hold the parameters"),
        (lambda f: _changed(f / "config.json", lambda c: c["config"].update(layer=5)), "Did you mean 'layers'"),
        (lambda f: _changed(f / "config.json", lambda c: c["config"].update(width="8")), "not a whole number"),
        (lambda f: _changed(f / "config.json", lambda c: c["files"].update({"../x": ""})), "does not list"),
    ],
)
def test_a_folder_that_is_torn_or_does_not_fit_is_named(
    tmp_path: Path, spoil: Callable[[Path], object], reason: str
) -> None:
    decoder().save_pretrained(tmp_path)
    spoil(tmp_path)
    with pytest.raises(InvalidFile, match=reason):
        PrefixDecoder.from_pretrained(tmp_path)


def test_a_source_that_is_no_folder_and_no_hub_name_is_refused() -> None:
    with pytest.raises(InvalidFile, match="owner/name"):
        PrefixDecoder.from_pretrained("nowhere")


def test_a_weight_too_large_for_half_precision_is_refused(tmp_path: Path) -> None:
    model = decoder()
    with torch.no_grad():
        model.norm.weight[0] = 1e6
    with pytest.raises(InvalidFile, match="float16"):
        model.save_pretrained(tmp_path, half=True)
    assert not list(tmp_path.iterdir())


def test_what_is_uploaded_is_what_was_saved(tmp_path: Path) -> None:
    from saywhere.models.folder import push_part

    calls: list[tuple[str, dict[str, object]]] = []

    class Hub:
        def create_repo(self, repo_id: str, **settings: object) -> None:
            calls.append((repo_id, settings))

        def upload_folder(self, **settings: object) -> None:
            calls.append(("upload", settings))

    decoder().save_pretrained(tmp_path)
    push_part(tmp_path, "me/decoder", api=Hub())
    assert calls[0] == ("me/decoder", {"private": True, "exist_ok": True})
    assert sorted(calls[1][1]["allow_patterns"]) == sorted(p.name for p in tmp_path.iterdir())  # type: ignore[call-overload]
