"""Our BERT refuses what is none; that it equals transformers' is shown in test_embed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from saywhere.core import InvalidFile
from saywhere.language.bert import load_bert


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24
    )
    transformers.BertModel(config).save_pretrained(tmp_path)
    return tmp_path


def test_padding_does_not_change_the_states_of_a_text(folder: Path) -> None:
    network = load_bert(folder)
    alone = network(torch.tensor([[3, 4, 5]]), torch.ones(1, 3, dtype=torch.long))
    padded = network(torch.tensor([[3, 4, 5, 0, 0]]), torch.tensor([[1, 1, 1, 0, 0]]))
    torch.testing.assert_close(padded[:, :3], alone, atol=1e-6, rtol=1e-5)


def test_every_layer_counts(folder: Path) -> None:
    reference = transformers.BertModel.from_pretrained(folder).eval()
    ids = torch.tensor([[3, 4, 5, 6]])
    with torch.no_grad():
        expected = reference(input_ids=ids).last_hidden_state
    torch.testing.assert_close(load_bert(folder)(ids, torch.ones_like(ids)), expected, atol=1e-5, rtol=1e-4)


def test_a_missing_tensor_is_named(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(
        InvalidFile, match=r"lacks 1 tensors of a BERT, first 'encoder\.layer\.1\.output\.dense\.weight'"
    ):
        load_bert(folder)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"hidden_act": "relu"}, "does not describe a BERT with GELU"),
        ({"num_hidden_layers": None}, "does not describe a BERT"),
        ({"num_hidden_layers": 3}, "lacks 16 tensors"),
        ({"hidden_size": 32}, "different sizes"),
    ],
)
def test_a_config_of_something_else_is_refused(folder: Path, change: dict[str, object], reason: str) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InvalidFile, match=reason):
        load_bert(folder)


def test_torn_weights_are_refused(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(InvalidFile, match="cannot be read as safetensors"):
        load_bert(folder)
