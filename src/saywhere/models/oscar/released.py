"""Published Oscars: checkpoints of Oscar and VinVL in their own layout, tuned for captions or not.

A folder holds config.json (a BERT's, with `img_feature_dim` and `use_img_layernorm`), vocab.txt and
pytorch_model.bin, of which only plain tensors are read (`weights_only`); safetensors will do as well. Regions were
2,048 numbers and 6 of the box in the order that is ours: x1, y1, x2, y2, width, height, as fractions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from saywhere.assets.checkpoint import CONFIG, read_json, read_tensors
from saywhere.assets.conversion import to_safetensors
from saywhere.core.errors import InvalidFile, InvalidValue, require
from saywhere.models.common.modes import seeded
from saywhere.models.oscar.batch import BOX_SIZE
from saywhere.models.oscar.bert import bert_tensors
from saywhere.models.oscar.config import OBJECT, OscarConfig
from saywhere.models.oscar.network import Oscar
from saywhere.models.oscar.words import WordPieces

WEIGHTS, SAFE, PIECES = "pytorch_model.bin", "model.safetensors", "vocab.txt"
_REGIONS = {"regions": "bert.img_embedding", "region_norm": "bert.LayerNorm"}
# TensorFlow's names, which the oldest checkpoints keep.
_OLD = {".gamma": ".weight", ".beta": ".bias"}


def oscar_from_released(folder: str | Path, levels: Sequence[str] = (OBJECT,)) -> Oscar:
    """A network with the weights of a published checkpoint, at rest. levels: what it will be asked for; see `Oscar`.

    One that was not tuned for captions yet has a head all the same, because it was trained to fill in words.
    """
    root = Path(folder)
    described = read_json(root / CONFIG)
    given = _tensors(root)
    config = _config(root, described, "bert.LayerNorm.weight" in given, levels)
    words = _words(root, bool(described.get("do_lower_case", True)))
    with seeded(0):
        model = Oscar(config, words)
    found = _found(root, given, config)
    expected = {name for name in model.state_dict() if name != "levels.weight"}
    if lost := sorted(expected - set(found)):
        raise InvalidFile(root, f"lacks {len(lost)} tensors of an Oscar, first {lost[0]!r}")
    try:
        model.load_state_dict(model.state_dict() | found)
    except RuntimeError as error:
        raise InvalidFile(root, f"has tensors of other shapes than {CONFIG} says: {error}") from error
    return model.eval()


def _config(root: Path, described: Mapping[str, Any], norm_regions: bool, levels: Sequence[str]) -> OscarConfig:
    if described.get("hidden_act", "gelu") != "gelu":
        raise InvalidFile(root / CONFIG, f"describes a network with {described['hidden_act']!r}, not GELU")
    try:
        return OscarConfig(
            words=int(described["vocab_size"]),
            region_size=int(described["img_feature_dim"]) - BOX_SIZE,
            width=int(described["hidden_size"]),
            layers=int(described["num_hidden_layers"]),
            heads=int(described["num_attention_heads"]),
            feed_forward=int(described["intermediate_size"]),
            dropout=float(described.get("hidden_dropout_prob", 0.1)),
            attention_dropout=float(described.get("attention_probs_dropout_prob", 0.1)),
            norm_epsilon=float(described.get("layer_norm_eps", 1e-12)),
            norm_regions=norm_regions,
            levels=tuple(levels),
        )
    except (KeyError, TypeError, ValueError, InvalidValue) as error:
        raise InvalidFile(root / CONFIG, f"does not describe an Oscar: {error}") from error


def _tensors(root: Path) -> dict[str, Tensor]:
    if (root / SAFE).is_file():
        given = read_tensors(root / SAFE)
    else:
        try:
            content = (root / WEIGHTS).read_bytes()
        except OSError as error:
            raise InvalidFile(root, f"holds neither {SAFE} nor {WEIGHTS}: {error.strerror or error}") from error
        from safetensors.torch import load

        given = load(to_safetensors(content, WEIGHTS))
    renamed = {}
    for name, tensor in given.items():
        for old, new in _OLD.items():
            name = name.removesuffix(old) + new if name.endswith(old) else name
        renamed[name.removeprefix("module.")] = tensor
    return renamed


def _found(root: Path, given: Mapping[str, Tensor], config: OscarConfig) -> dict[str, Tensor]:
    """The checkpoint's tensors under our names."""
    try:
        found = bert_tensors(given, config, has_head="cls.predictions.transform.dense.weight" in given)
    except KeyError as error:
        raise InvalidFile(root, f"lacks the tensor {error}") from error
    for ours, theirs in _REGIONS.items():
        for kind in ("weight", "bias"):
            if f"{theirs}.{kind}" in given:
                found[f"{ours}.{kind}"] = given[f"{theirs}.{kind}"].float()
    return found


def _words(root: Path, lower: bool) -> WordPieces:
    tokenizers = require("tokenizers", needed_for="reading with a BERT's word pieces", extra="models")
    path = root / PIECES
    if not path.is_file():
        raise InvalidFile(root, f"holds no {PIECES}")
    pieces = tokenizers.Tokenizer(
        tokenizers.models.WordPiece.from_file(str(path), unk_token="[UNK]", max_input_chars_per_word=100)
    )
    pieces.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=lower)
    pieces.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    pieces.decoder = tokenizers.decoders.WordPiece()
    pieces.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    return WordPieces(pieces)


def has_released_layout(folder: str | Path) -> bool:
    """Whether a folder looks like a published Oscar."""
    path = Path(folder) / CONFIG
    return path.is_file() and "img_feature_dim" in read_json(path)
