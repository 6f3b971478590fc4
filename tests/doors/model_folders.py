"""A small folder of every kind of model, and what opens it: what hostile folders are made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models

from saywhere.language.vocabulary import Vocabulary
from saywhere.models.answerer.config import AnswererConfig
from saywhere.models.answerer.network import AnswerNet
from saywhere.models.common.answers import AnswerVocabulary
from saywhere.models.eye.encoder import EyeLearner
from saywhere.models.folder import save_part
from saywhere.models.mitr import MITR
from saywhere.models.oscar.pretrained import load_oscar, save_oscar
from saywhere.models.patchioner.aggregation import LearnedAggregation
from saywhere.models.patchioner.alignment import LinearAlignment, Talk2DinoAlignment
from saywhere.models.patchioner.bridge import Bridge, BridgeConfig
from saywhere.models.patchioner.decoder import PrefixDecoder
from saywhere.models.patchioner.gap_model import GapModel
from saywhere.models.patchioner.matching import Matcher, MatcherConfig, MatchNet
from saywhere.models.patchioner.memory import MemoryBank
from saywhere.models.patchioner.naming import BoxNaming, NamingConfig, NamingNet
from saywhere.models.patchioner.queries import QueryConfig, QueryNet
from saywhere.models.patchioner.referring import Referrer, ReferringConfig, ReferringNet
from saywhere.models.patchioner.released import ReleasedDecoder
from saywhere.models.patchioner.seer import Seer, class_names, save_config
from saywhere.models.patchioner.tags import Tags
from saywhere.models.tracevlm.network import TraceVLM
from saywhere.models.tracevlm.small_model import SmallTraceVLM
from saywhere.models.updown import UpDnCaptioner, UpDnVqa
from tests.models import eye_small, oscar_small, patchioner_seeing, patchioner_small, small, updown_small
from tests.models.test_patchioner_seer import CONFIG as SEER
from tests.models.tracevlm import small_body

WORDS = Vocabulary.of_words(" ".join(f"w{number}" for number in range(40)).split())


@dataclass(frozen=True)
class Folder:
    """save: writes a small one. open: reads it, and uses it once where that is cheap."""

    save: Callable[[Path], Any]
    open: Callable[[Path], Any]


def _words(count: int) -> Vocabulary:
    return Vocabulary("words", tuple(f"w{number}" for number in range(count)))


def _seer(folder: Path) -> None:
    parts = {"decoder": patchioner_seeing.decoder(0), "decoder-paired": patchioner_seeing.decoder(1)}
    for name, part in parts.items():
        part.save_pretrained(folder / name)
    patchioner_seeing.alignment().save_pretrained(folder / "alignment")
    patchioner_seeing.tags().save_pretrained(folder / "tags")
    patchioner_seeing.bank().save(folder / "memory.safetensors")
    save_config(folder, SEER)


def _open_seer(folder: Path) -> Seer:
    made = patchioner_seeing.open_tiny(folder)
    made.look(patchioner_seeing.photo()).caption()
    return made


def _referrer(folder: Path) -> None:
    config = ReferringConfig(len(WORDS), 6, width=16, heads=2, layers=1, word_size=8)
    Referrer(ReferringNet(config), WORDS).save_pretrained(folder)


def _answerer(folder: Path) -> None:
    config = AnswererConfig(3, 8, text_size=6, width=16, heads=2, layers=1, inner=16)
    AnswerNet(config).attach(AnswerVocabulary(("yes", "no", "two"))).save_pretrained(folder)


def _gap(folder: Path) -> None:
    rng = np.random.default_rng(0)
    GapModel.fit(rng.normal(size=(40, 4)), rng.normal(size=(40, 4))).save(folder)


def _matching(folder: Path) -> None:
    shape = {"width": 8, "heads": 2, "layers": 1, "feed_forward": 8}
    config = MatcherConfig(16, 6, **shape, query_layers=1, query_heads=2, query_feed_forward=8)
    Matcher(MatchNet(config)).save_pretrained(folder)


def _released(folder: Path) -> None:
    shape = {"words": 8, "places": 9, "width": 8, "layers": 1, "heads": 2, "vector_size": 4}
    words = Tokenizer(models.WordLevel({f"w{number}": number for number in range(8)}, unk_token="w0"))
    ReleasedDecoder(shape, words).save_pretrained(folder)


def _class_names(folder: Path) -> None:
    save_part(folder, "patchioner-class-names", {"names": ["cat", "dog"]}, {"vectors": torch.eye(2)})


class _Classifying:
    """An encoder whose weights came with a classifier of two classes."""

    classifier = np.zeros((2, 3), np.float32), np.zeros(2, np.float32)


FOLDERS = {
    "mitr": Folder(small.network().attach(_words(small.WORDS)).save_pretrained, MITR.from_pretrained),
    "updown-caption": Folder(
        updown_small.captioner().attach(_words(updown_small.WORDS)).save_pretrained, UpDnCaptioner.from_pretrained
    ),
    "updown-vqa": Folder(
        updown_small.vqa()
        .attach(_words(updown_small.WORDS), AnswerVocabulary(tuple(f"a{n}" for n in range(updown_small.ANSWERS))))
        .save_pretrained,
        UpDnVqa.from_pretrained,
    ),
    "oscar": Folder(lambda folder: save_oscar(oscar_small.network(), folder), load_oscar),
    "patchioner-decoder": Folder(patchioner_small.decoder().save_pretrained, PrefixDecoder.from_pretrained),
    "aggregation": Folder(LearnedAggregation(8, 2).save_pretrained, LearnedAggregation.from_pretrained),
    "alignment": Folder(patchioner_seeing.alignment().save_pretrained, LinearAlignment.from_pretrained),
    "talk2dino": Folder(Talk2DinoAlignment(6, 8).save_pretrained, Talk2DinoAlignment.from_pretrained),
    "bridge": Folder(Bridge(BridgeConfig(6)).save, Bridge.load),
    "gap": Folder(_gap, GapModel.load),
    "tags": Folder(patchioner_seeing.tags().save_pretrained, Tags.from_pretrained),
    "eye": Folder(lambda folder: eye_small.small_eye().save_pretrained(folder, int8=True), EyeLearner.from_pretrained),
    "referring": Folder(_referrer, Referrer.from_pretrained),
    "naming": Folder(BoxNaming(NamingNet(NamingConfig(("cat", "dog"), 4))).save_pretrained, BoxNaming.from_pretrained),
    "matching": Folder(_matching, Matcher.from_pretrained),
    "query": Folder(QueryNet(QueryConfig(6, 2, 8, 1)).save_pretrained, QueryNet.from_pretrained),
    "released-decoder": Folder(_released, ReleasedDecoder.from_pretrained),
    "class-names": Folder(_class_names, lambda folder: class_names(folder, _Classifying())),
    "tracevlm-small": Folder(lambda folder: small_body.model().save_pretrained(folder), SmallTraceVLM.from_pretrained),
    "answerer": Folder(_answerer, AnswerNet.from_pretrained),
    "seer": Folder(_seer, _open_seer),
    "memory": Folder(
        lambda folder: patchioner_seeing.bank().save(folder / "memory.safetensors"),
        lambda folder: MemoryBank.load(folder / "memory.safetensors").sentences[:],
    ),
}
"""Every kind but TraceVLM, whose base takes seconds to make. A test counts that none is missing."""


def save_tracevlm(folder: Path) -> None:
    from tests.models.tracevlm.small import model

    model().save_pretrained(folder)


TRACEVLM = Folder(save_tracevlm, TraceVLM.from_pretrained)
