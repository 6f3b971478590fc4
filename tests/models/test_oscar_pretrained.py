"""Oscars in folders, from a BERT, and for other levels than they had."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from saywhere.core import InvalidFile, InvalidValue
from saywhere.models.oscar import Oscar, WordPieces, with_levels
from saywhere.models.oscar.mask import attention_mask
from saywhere.models.oscar.released import has_released_layout
from tests.models import oscar_small as small

transformers = pytest.importorskip("transformers")

PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog", "##s", "cup", "palm", "tree", "and", "the", ".")


def save_bert(folder: Path, *, head: bool = True, **changes: Any) -> Any:
    """A tiny BERT with random weights, with its tokenizer, in a folder; also itself."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    sizes = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 24}
    config = transformers.BertConfig(vocab_size=len(PIECES) + 2, max_position_embeddings=80, **(sizes | changes))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = (transformers.BertForMaskedLM if head else transformers.BertModel)(config).eval()
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.2)
    network.save_pretrained(folder)
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    return network


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("bert")
    return folder, save_bert(folder)


def test_a_network_comes_back_whole(tmp_path: Path) -> None:
    model = small.network(levels=("object", "scene"))
    model.save_pretrained(tmp_path)
    found = Oscar.from_pretrained(tmp_path)
    assert found.config == model.config
    assert not found.training
    assert found.coding.fingerprint == model.coding.fingerprint
    assert found.write(small.images(), "scene") == model.write(small.images(), "scene")


def test_a_network_stored_in_half_the_room_says_nearly_the_same(tmp_path: Path) -> None:
    model = small.network()
    model.save_pretrained(tmp_path, half=True)
    found = Oscar.from_pretrained(tmp_path)
    assert found.words.weight.dtype == torch.float32
    a, b = (one.attend(small.images()).states for one in (model, found))
    torch.testing.assert_close(a, b, atol=0.05, rtol=0)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "vocabulary.json"])
@pytest.mark.parametrize("damage", ["missing", "torn", "changed"])
def test_a_damaged_file_is_refused(tmp_path: Path, name: str, damage: str) -> None:
    small.network().save_pretrained(tmp_path)
    path = tmp_path / name
    content = path.read_bytes()
    path.unlink()
    if damage == "torn":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "changed":
        path.write_bytes(content[:-2] + b"~" + content[-1:])
    with pytest.raises(InvalidFile, match=name):
        Oscar.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"width": 32}, "does not hold the parameters"),
        ({"width": 0}, "width"),
        ({"w": 1}, "'w'"),
        ({"words": 5}, "room"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(tmp_path: Path, changes: dict[str, int], reason: str) -> None:
    small.network().save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    described = json.loads(path.read_text())
    path.write_text(json.dumps(described | {"config": described["config"] | changes}))
    with pytest.raises(InvalidFile, match=reason):
        Oscar.from_pretrained(tmp_path)


def test_the_trunk_is_berts(bert: tuple[Path, Any]) -> None:
    folder, network = bert
    model = Oscar.from_bert(folder, small.REGION).eval()
    seen, texts = [small.image(0, 0, ["palm tree", "dogs"]), small.image(1, 0, ["cup"])], ["the dog .", "a cup"]
    batch = model.reader.batch(seen, texts, ["object"] * 2)
    ids = torch.cat([batch.captions, batch.context.tags], dim=1)
    c, t = batch.captions.shape[1], batch.context.tags.shape[1]
    places = torch.cat([torch.arange(c), 40 + torch.arange(t)]).expand_as(ids)
    types = torch.cat([torch.zeros(c), torch.ones(t)]).long().expand_as(ids)
    mask = attention_mask(batch.there, batch.context.there)[:, None]
    blocked = torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)
    with torch.no_grad():
        states = network.bert(ids, attention_mask=blocked, token_type_ids=types, position_ids=places)
        scores = network.cls(states.last_hidden_state)
    attended = model.attend(seen, texts)
    there = attended.parts > 0
    torch.testing.assert_close(attended.states[there], states.last_hidden_state[there], atol=1e-5, rtol=0)
    with torch.no_grad():
        said = model(batch, torch.where(batch.there, torch.arange(c), 0))
    torch.testing.assert_close(said[batch.there], scores[:, :c][batch.there], atol=1e-5, rtol=0)


def test_a_berts_words_are_its_pieces(bert: tuple[Path, Any]) -> None:
    words = Oscar.from_bert(bert[0], small.REGION).coding
    assert isinstance(words, WordPieces)
    ids = words.encode("The DOGS and a zebra.")
    assert [PIECES[i] for i in ids] == ["the", "dog", "##s", "and", "a", "[UNK]", "."]
    assert words.decode(words.encode("the dogs and a palm tree")) == "the dogs and a palm tree"
    assert [PIECES[i] for i in (words.pad_id, words.cls_id, words.sep_id, words.mask_id)] == [
        "[PAD]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
    ]


def test_an_oscar_from_a_bert_writes_and_is_saved_with_its_pieces(bert: tuple[Path, Any], tmp_path: Path) -> None:
    model = Oscar.from_bert(bert[0], small.REGION, levels=("object", "scene"), seed=1)
    with torch.no_grad():
        # The table has two rows more than there are pieces; they must never be said.
        model.word_bias[len(PIECES) :] = 50
    wanted = model.write(small.images())
    assert all(one.text for one in wanted)
    assert {word for one in wanted for word in one.text.split()} <= {*PIECES, "dogs", "cups", "trees"}
    model.save_pretrained(tmp_path)
    found = Oscar.from_pretrained(tmp_path)
    assert isinstance(found.coding, WordPieces)
    assert found.coding.fingerprint == model.coding.fingerprint
    assert found.write(small.images()) == wanted


def test_what_a_bert_lacks_depends_on_the_seed_alone(bert: tuple[Path, Any]) -> None:
    first, again, other = (Oscar.from_bert(bert[0], small.REGION, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.regions.weight, again.regions.weight)
    assert not torch.equal(first.regions.weight, other.regions.weight)
    assert torch.equal(first.words.weight, other.words.weight)


def test_a_bert_without_a_head_gets_a_new_one(tmp_path: Path) -> None:
    network = save_bert(tmp_path, head=False)
    first, again = (Oscar.from_bert(tmp_path, small.REGION, seed=1) for _ in range(2))
    np.testing.assert_array_equal(first.words.weight.detach(), network.embeddings.word_embeddings.weight.detach())
    assert torch.equal(first.head.weight, again.head.weight)
    assert (first.word_bias == 0).all()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hidden_act": "relu"}, "GELU"),
        ({"max_position_embeddings": 60}, "60 positions"),
        ({"type_vocab_size": 1}, "1 t"),
    ],
)
def test_a_checkpoint_that_cannot_carry_oscar_is_refused(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    save_bert(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(InvalidFile, match=reason):
        Oscar.from_bert(tmp_path, small.REGION)


def test_a_folder_that_is_no_bert_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="no BERT"):
        Oscar.from_bert(tmp_path, small.REGION)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    with pytest.raises(InvalidFile, match="'gpt2'"):
        Oscar.from_bert(tmp_path, small.REGION)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (("object",), ("object",)),
        (("object",), ("scene",)),
        (("object",), ("scene", "object")),
        (("object", "scene"), ("scene", "action", "object")),
    ],
)
def test_a_network_for_other_levels_says_at_first_what_it_said(old: tuple[str, ...], new: tuple[str, ...]) -> None:
    model = small.network(levels=old)
    made = with_levels(model, new, dropout=0.3)
    assert made.config.levels == new
    assert (made.config.dropout, made.config.attention_dropout) == (0.3, 0.0)
    for level in old:
        asked = level if level in new else None
        assert made.write(small.images(), asked) == model.write(small.images(), level)
    with torch.no_grad():
        made.words.weight.zero_()
    assert model.words.weight.abs().max() > 0


@pytest.mark.parametrize(
    ("old", "new"), [(("object",), ("scene", "action")), (("object", "scene"), ("scene",)), (("a", "b"), ("a", "c"))]
)
def test_levels_are_not_lost(old: tuple[str, ...], new: tuple[str, ...]) -> None:
    with pytest.raises(InvalidValue, match="leave out"):
        with_levels(small.network(levels=old), new)


def save_released(folder: Path, *, norm: bool, head: bool = True) -> tuple[Any, dict[str, torch.Tensor]]:
    """A tiny checkpoint in the layout of Oscar's and VinVL's authors; also the BERT inside it, and its tensors."""
    network = save_bert(folder / "inside", head=head)
    tensors = {name if head else f"bert.{name}": value.clone() for name, value in network.state_dict().items()}
    generator = torch.Generator().manual_seed(9)
    tensors["bert.img_embedding.weight"] = torch.randn(16, small.REGION + 6, generator=generator)
    tensors["bert.img_embedding.bias"] = torch.randn(16, generator=generator)
    if norm:
        tensors["bert.LayerNorm.weight"] = 1 + 0.1 * torch.randn(16, generator=generator)
        tensors["bert.LayerNorm.bias"] = torch.randn(16, generator=generator)
    # As the oldest files call them, and with what nothing here reads.
    old = {name.replace("embeddings.LayerNorm.weight", "embeddings.LayerNorm.gamma"): t for name, t in tensors.items()}
    old["bert.pooler.dense.weight"] = torch.zeros(16, 16)
    torch.save(old, folder / "pytorch_model.bin")
    config = json.loads((folder / "inside" / "config.json").read_text())
    config |= {"img_feature_dim": small.REGION + 6, "use_img_layernorm": int(norm), "img_feature_type": "frcnn"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "vocab.txt").write_text((folder / "inside" / "vocab.txt").read_text())
    return network, tensors


@pytest.mark.parametrize("norm", [True, False])
def test_a_published_checkpoint_reads_and_says_what_its_own_network_would(tmp_path: Path, norm: bool) -> None:
    network, tensors = save_released(tmp_path, norm=norm)
    model = Oscar.from_released(tmp_path)
    assert (model.config.norm_regions, model.config.region_size, model.training) == (norm, small.REGION, False)
    images = small.images()
    batch = model.reader.batch(images, ["a dog and the cup"] * len(images), ["object"] * len(images))
    with torch.no_grad():
        x = torch.cat([model.embed_captions(batch.captions, batch.levels), model.embed_context(batch.context)], 1)
        # Their way: embeddings of text and of regions one after the other, through BERT's own layers.
        text = torch.cat([batch.captions, batch.context.tags], dim=1)
        first = batch.captions.shape[1]
        places = torch.cat([torch.arange(first), 40 + torch.arange(batch.context.tags.shape[1])])
        kinds = torch.cat([torch.zeros(first), torch.ones(batch.context.tags.shape[1])]).long()
        words = network.bert.embeddings(
            input_ids=text, token_type_ids=kinds.expand_as(text), position_ids=places.expand_as(text)
        )
        seen = torch.nn.functional.linear(
            batch.context.regions, tensors["bert.img_embedding.weight"], tensors["bert.img_embedding.bias"]
        )
        if norm:
            weight, bias = tensors["bert.LayerNorm.weight"], tensors["bert.LayerNorm.bias"]
            seen = torch.nn.functional.layer_norm(seen, (16,), weight, bias, model.config.norm_epsilon)
        torch.testing.assert_close(x, torch.cat([words, seen], dim=1), atol=1e-5, rtol=1e-5)
        mask = attention_mask(batch.there, batch.context.there)
        added = torch.where(mask, 0.0, torch.finfo(torch.float32).min)
        if added.ndim == 3:
            added = added[:, None]
        theirs = x
        for layer in network.bert.encoder.layer:
            out = layer(theirs, added)
            theirs = out[0] if isinstance(out, tuple) else out
        scores = network.cls(theirs[:, 1:2])
        ours = model(batch, torch.ones(len(images), 1, dtype=torch.long))
    torch.testing.assert_close(ours, scores, atol=1e-4, rtol=1e-4)
    assert len(model.write(images)) == len(images)
    model.save_pretrained(tmp_path / "ours")
    assert Oscar.from_pretrained(tmp_path / "ours").write(small.images()) == model.write(small.images())


def test_a_published_checkpoint_that_is_not_whole_or_not_plain_is_refused(tmp_path: Path) -> None:
    _, tensors = save_released(tmp_path, norm=True)
    torch.save({n: t for n, t in tensors.items() if "layer.2.output" not in n}, tmp_path / "pytorch_model.bin")
    with pytest.raises(InvalidFile, match="lacks the tensor"):
        Oscar.from_released(tmp_path)
    torch.save({"model": tmp_path}, tmp_path / "pytorch_model.bin")
    with pytest.raises(InvalidFile, match="plain tensors"):
        Oscar.from_released(tmp_path)
    (tmp_path / "pytorch_model.bin").unlink()
    with pytest.raises(InvalidFile, match="holds neither"):
        Oscar.from_released(tmp_path)


def test_training_goes_on_from_a_published_checkpoint(tmp_path: Path) -> None:
    save_released(tmp_path, norm=True)
    assert has_released_layout(tmp_path)
    assert not has_released_layout(tmp_path / "inside")
    tuned = with_levels(Oscar.from_released(tmp_path), ("scene",))
    assert tuned.config.levels == ("scene",)
