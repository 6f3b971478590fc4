"""Any causal language model as a writer, here a tiny GPT-2 and a tiny Qwen3 with random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from saywhere.core import InvalidFile, InvalidValue
from saywhere.models.patchioner.decode import Writing
from saywhere.models.patchioner.language_model import LanguageModelWriter
from tests.models.patchioner_small import SENTENCES, SIZE, vectors

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

PROMPTS = ["There are a, cat in image.", "", "a red", "a blue boat on a dog", ""]


def tokenizer() -> Any:
    words = sorted({w for s in [*SENTENCES, *PROMPTS] for w in s.replace(".", " .").replace(",", " ,").split()})
    table = {word: i for i, word in enumerate(["<unk>", "<end>", *words])}
    plain = tokenizers.Tokenizer(tokenizers.models.WordLevel(table, unk_token="<unk>"))
    plain.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="<unk>", eos_token="<end>")


def network(kind: str, words: int) -> Any:
    ends = {"bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 1}
    if kind == "gpt2":
        config = transformers.GPT2Config(vocab_size=words, n_embd=16, n_layer=2, n_head=2, n_positions=64, **ends)
        return transformers.GPT2LMHeadModel(config)
    config = transformers.Qwen3Config(
        vocab_size=words,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        max_position_embeddings=64,
        **ends,
    )
    return transformers.Qwen3ForCausalLM(config)


def writer(kind: str = "gpt2", **settings: Any) -> LanguageModelWriter:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        words = tokenizer()
        model = LanguageModelWriter(network(kind, len(words)), words, SIZE, prefix=3, max_words=8, **settings).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.3)
    return model


@pytest.mark.parametrize("kind", ["gpt2", "qwen3"])
@pytest.mark.parametrize("how", [Writing(), Writing("beam", beams=3), Writing("nucleus", no_repeat=2)])
def test_prompts_of_different_lengths_do_not_leak_into_each_other(kind: str, how: Writing) -> None:
    model, rows = writer(kind), vectors(5)
    together = model.write(rows, how, PROMPTS)
    assert len({one.text for one in together}) > 2
    for i, one in enumerate(together):
        alone = model.write(rows[i : i + 1], how, PROMPTS[i : i + 1])[0]
        assert alone.text == one.text
        np.testing.assert_allclose(alone.token_logprobs, one.token_logprobs, atol=1e-4)
    assert [one.text for one in model.write(rows, how)] != [one.text for one in together]


@pytest.mark.parametrize("kind", ["gpt2", "qwen3"])
def test_the_score_of_a_text_is_that_of_the_plain_forward_pass(kind: str) -> None:
    model, rows = writer(kind), torch.from_numpy(vectors(4))
    for i, one in enumerate(model.write(rows.numpy(), Writing("beam", beams=2), PROMPTS[:4])):
        prompt, said = (model.tokenizer.encode(text) for text in (PROMPTS[i], one.text))
        said += [model.ends[0]] * one.ended
        assert len(said) == len(one.token_logprobs) > 1
        with torch.no_grad():
            embedded, mask, _ = model._read(rows[i : i + 1], [prompt + said[:-1]])
            scores = model.network(inputs_embeds=embedded, attention_mask=mask).logits[0, -len(said) :]
        expected = scores.log_softmax(-1).gather(1, torch.tensor(said)[:, None])[:, 0]
        np.testing.assert_allclose(one.token_logprobs, expected, atol=1e-4)


def test_special_tokens_are_never_said() -> None:
    model = writer()
    with torch.no_grad():
        model.network.get_input_embeddings().weight[0] *= 30
    assert model.write(vectors(4)) == model.write(vectors(4))
    assert all(one.text.count(" ") == len(one.token_logprobs) - 1 - one.ended for one in model.write(vectors(4)))


def test_only_the_prefix_learns_unless_asked_otherwise() -> None:
    for frozen in (True, False):
        model = writer(frozen=frozen).train()
        model.loss(torch.from_numpy(vectors(3)), SENTENCES[:3], PROMPTS[:3], smoothing=0.1).backward()
        moved = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
        assert {"prefix.weight", "prefix.bias"} <= moved
        assert any(name.startswith("network.") for name in moved) is not frozen


def test_the_loss_of_a_batch_is_the_mean_over_its_tokens() -> None:
    model, rows = writer(), torch.from_numpy(vectors(2))
    texts = ["a red cat", "a blue dog on a boat."]
    each = [float(model.loss(rows[i : i + 1], texts[i : i + 1]).detach()) for i in range(2)]
    assert float(model.loss(rows, texts).detach()) == pytest.approx((each[0] * 4 + each[1] * 8) / 12, rel=1e-4)


def test_a_saved_writer_comes_back_and_writes_the_same(tmp_path: Path) -> None:
    model, rows = writer(), vectors(3)
    model.save_pretrained(tmp_path / "writer")
    again = LanguageModelWriter.from_pretrained(tmp_path / "writer")
    assert [one.text for one in again.write(rows)] == [one.text for one in model.write(rows)]
    assert again.max_words == 8


def test_what_cannot_be_is_named(tmp_path: Path) -> None:
    model = writer()
    with pytest.raises(InvalidValue, match=r"not .m, 12."):
        model.write(np.ones((2, 3)))
    with pytest.raises(InvalidValue, match="1 for 2 vectors"):
        model.write(vectors(2), prompts=["a"])
    with pytest.raises(InvalidValue, match="made for 8"):
        model.write(vectors(2), Writing(max_words=9))
    with pytest.raises(InvalidFile, match="no language model"):
        LanguageModelWriter.open(tmp_path / "nowhere", SIZE)
    with pytest.raises(InvalidValue, match="prefix"):
        LanguageModelWriter(model.network, model.tokenizer, SIZE, prefix=0)
    assert model.write(np.empty((0, SIZE))) == []
