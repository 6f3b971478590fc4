"""A model with another eye: what is kept, what goes, and what does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from saywhere.build.with_eye import build_with_eye
from saywhere.core import Box, InvalidFile, InvalidValue, WholeImage
from saywhere.language.vocabulary import Vocabulary
from saywhere.models.eye.encoder import EyeLearner
from saywhere.models.patchioner.config import DecoderConfig
from saywhere.models.patchioner.decoder import PrefixDecoder
from saywhere.models.patchioner.eyes import Blend, EncoderEyes
from saywhere.models.patchioner.seer import open_seer
from saywhere.models.patchioner.seer_config import read_config, save_config
from saywhere.models.patchioner.tags import Tags
from saywhere.vision.eye import Eye, EyeConfig, EyeEncoder, EyeNet, TrunkNet
from saywhere.vision.focus import FocusConfig, FocusNet
from saywhere.vision.runtime import open_runtime
from tests.models.patchioner_seeing import THINGS, ThingFinder, alignment, attentive_decoder, bank, tags
from tests.models.test_patchioner_seer import CONFIG as SEER

SIZE = 3
CONFIG = EyeConfig(size=24, heads=3, layers=1, text_size=SIZE, tap=1, input_px=32, patch_px=8, cell_size=6)


def learner() -> EyeLearner:
    torch.manual_seed(0)
    net = EyeNet(CONFIG)
    torch.nn.init.normal_(net.cell.weight)
    named = dict(zip(THINGS, torch.eye(SIZE), strict=True))
    return EyeLearner(net, named, {}).eval()


def encoder(eye: EyeLearner, cache: Path) -> EyeEncoder:
    torch.manual_seed(1)
    trunk = FocusNet(FocusConfig(size=24, layers=3, heads=3, patch=8, places=3, head=(4, 4, 4)))
    example = torch.zeros(1, 32, 32, 3, dtype=torch.uint8)
    run = open_runtime(lambda: Eye(TrunkNet(trunk, CONFIG), eye.eye), "eye", example, cache, "torch")
    return EyeEncoder(run, CONFIG, "0" * 64)


@pytest.fixture
def parts(tmp_path: Path) -> dict[str, Path]:
    """Folders of a base, an eye and a writer that attends to it."""
    base = tmp_path / "base"
    for name, part in (("alignment", alignment()), ("tags", tags())):
        part.save_pretrained(base / name)
    for folder in SEER["writers"].values():
        attentive_decoder().save_pretrained(base / folder)
    bank().save(base / "memory.safetensors")
    save_config(base, SEER)
    learner().save_pretrained(tmp_path / "eye")
    words = Vocabulary.of_words(["a red cat", "a green dog"])
    shape = DecoderConfig(len(words), SIZE, width=8, layers=1, heads=2, feed_forward=8, max_words=6, states_size=24)
    PrefixDecoder.fresh(shape, words, 0).save_pretrained(tmp_path / "writer")
    return {name: tmp_path / name for name in ("base", "eye", "writer")}


def test_the_new_model_sees_with_the_eye_and_keeps_memory_and_writers(parts: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    build_with_eye(parts["base"], parts["eye"], {"looking": parts["writer"]}, out)
    old, new = read_config(parts["base"]), read_config(out)
    assert (new.encoder, list(new.writers)) == ("eye", ["looking", *old.writers])
    assert not (out / "alignment").exists()
    tags = Tags.from_pretrained(out / "tags")
    assert not tags.weight.any()
    eyes = EncoderEyes(encoder(learner(), tmp_path / "cache"), None, ThingFinder(), tags, None, Blend(**new.blend))
    image = Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 40, 3), dtype=np.uint8))
    for writer in new.writers:
        look = open_seer(out, writer, eyes=eyes).look(image)
        whole, part = look.captions([WholeImage(), Box(0, 0, 0.5, 0.5)])
        assert whole.text
        assert part.text
        assert look.word_score(Box(0, 0, 0.5, 0.5), part.text, 0).word == part.text.split()[0]


def test_the_whole_photo_has_the_vector_that_the_eye_gives_it(tmp_path: Path) -> None:
    eyes = EncoderEyes(encoder(learner(), tmp_path))
    view = eyes.look(Image.new("RGB", (40, 30), (200, 40, 0)))
    whole, part = eyes.align(view).vectors([WholeImage(), Box(0, 0, 1, 1)])
    np.testing.assert_allclose(whole, view.whole / np.linalg.norm(view.whole), atol=1e-6)
    assert np.abs(whole - part).max() > 1e-3


def test_a_writer_of_other_vectors_is_refused_and_nothing_is_written(parts: dict[str, Path], tmp_path: Path) -> None:
    words = Vocabulary.of_words(["a cat"])
    other = PrefixDecoder.fresh(DecoderConfig(len(words), 5, width=8, layers=1, heads=2), words, 0)
    other.save_pretrained(tmp_path / "w")
    with pytest.raises(InvalidValue, match="5 numbers"):
        build_with_eye(parts["base"], parts["eye"], {"other": tmp_path / "w"}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_holds_something_is_left_alone(parts: dict[str, Path]) -> None:
    with pytest.raises(InvalidFile, match="not empty"):
        build_with_eye(parts["base"], parts["eye"], {}, parts["base"])


def test_a_detector_without_tags_is_refused(tmp_path: Path) -> None:
    eye: Any = encoder(learner(), tmp_path)
    with pytest.raises(InvalidValue, match="come together"):
        EncoderEyes(eye, None, ThingFinder())
