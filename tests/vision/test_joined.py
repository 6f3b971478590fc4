"""Several encoders as one: what each sees, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from saywhere.core import Frame, InvalidValue, UnknownName
from saywhere.vision import PhotoLike, View, look, open_encoder, read_photo
from saywhere.vision.efficientnet import EfficientNetLite
from saywhere.vision.joined import JoinedEncoder
from saywhere.vision.look import LiteEncoder
from tests.vision.conftest import TINY, SavePhoto, tiny_network


def _lite(seed: int, input_px: int = 64, *, classifier: bool = True) -> LiteEncoder:
    return LiteEncoder(tiny_network(seed, classifier=classifier), f"tiny{seed}", str(seed) * 64, input_px)


class Watcher:
    """Sees two numbers per patch and says where it looked."""

    size = 2

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    @property
    def fingerprint(self) -> dict[str, str | int]:
        return {"encoder": "watcher"}

    def frame(self, photo_size: tuple[int, int]) -> Frame:
        return replace(self._frame, photo_size=photo_size)

    def look(self, photo: PhotoLike) -> View:
        frame = self.frame(read_photo(photo).size)
        return View(frame, np.ones((*frame.grid, 2)), np.ones(2), np.arange(4).reshape(2, 2))

    def look_many(self, photos: Sequence[PhotoLike]) -> list[View]:
        return [self.look(photo) for photo in photos]


def test_patches_and_the_whole_are_those_of_all_side_by_side(save_photo: SavePhoto) -> None:
    first, second = _lite(0), _lite(1)
    joined, path = JoinedEncoder([first, second]), save_photo(size=(50, 30))
    view, one, other = joined.look(path), first.look(path), second.look(path)
    assert joined.size == 18
    assert view.frame == one.frame == joined.frame((50, 30))
    np.testing.assert_array_equal(view.patches, np.concatenate([one.patches, other.patches], axis=2))
    np.testing.assert_array_equal(view.whole, np.concatenate([one.whole, other.whole]))
    assert view.attention is None


def test_a_photo_looks_the_same_alone_and_among_others(save_photo: SavePhoto) -> None:
    joined = JoinedEncoder([_lite(0), _lite(1), _lite(2)])
    paths = [save_photo(f"{n}.png", n, (20 + n, 30)) for n in range(3)]
    for path, view in zip(paths, joined.look_many(paths), strict=True):
        np.testing.assert_allclose(view.patches, joined.look(path).patches, rtol=1e-4, atol=1e-4)
    assert joined.look_many([]) == []


def test_the_attention_is_that_of_the_first_that_has_some(save_photo: SavePhoto) -> None:
    lite, path = _lite(0), save_photo()
    view = JoinedEncoder([lite, Watcher(lite.frame((3, 2)))]).look(path)
    assert view.patches.shape == (2, 2, 11)
    assert view.attention is not None
    np.testing.assert_allclose(view.attention, np.arange(4).reshape(2, 2) / 6)


def test_encoders_that_see_other_grids_are_refused() -> None:
    with pytest.raises(InvalidValue, match=r"not see photos on the same grid: \(2, 2\) of \(64, 64\) px, \(3, 3\)"):
        JoinedEncoder([_lite(0), _lite(1, 96)])
    # As many patches, but at other places of the photo.
    cropped = Watcher(Frame.centre_crop((3, 2), 64, (64, 64), 32))
    with pytest.raises(InvalidValue, match="same grid"):
        JoinedEncoder([_lite(0), cropped])
    with pytest.raises(InvalidValue, match="not at least 2"):
        JoinedEncoder([_lite(0)])


def test_the_fingerprint_tells_which_encoders_and_in_which_order() -> None:
    one, other, again = (JoinedEncoder([_lite(a), _lite(b)]).fingerprint for a, b in ((0, 1), (1, 0), (0, 1)))
    assert one == again != other
    assert (one["0_encoder"], one["1_encoder"], one["1_weights_sha256"]) == ("tiny0", "tiny1", "1" * 64)


@torch.no_grad()
def test_an_encoder_s_classifier_scores_the_mean_of_patches_as_its_network_does(save_photo: SavePhoto) -> None:
    lite = _lite(0)
    assert lite.classifier is not None
    weight, bias = lite.classifier
    view = lite.look(save_photo())
    logits = lite.network.logits(torch.from_numpy(view.patches.copy()).permute(2, 0, 1)[None])[0]
    np.testing.assert_allclose(view.whole @ weight.T + bias, logits.numpy(), rtol=1e-5)
    assert weight.dtype == bias.dtype == np.float32
    assert _lite(0, classifier=False).classifier is None


def test_the_classifier_scores_the_mean_of_what_each_scores(save_photo: SavePhoto) -> None:
    parts, path = [_lite(0), _lite(1), _lite(2)], save_photo()
    classifier = JoinedEncoder(parts).classifier
    assert classifier is not None
    weight, bias = classifier
    assert (weight.shape, weight.dtype, bias.dtype) == ((5, 27), np.float32, np.float32)
    each = []
    for part in parts:
        assert part.classifier is not None
        own_weight, own_bias = part.classifier
        each.append(part.look(path).whole @ own_weight.T + own_bias)
    assert not np.allclose(each[0], each[1])
    np.testing.assert_allclose(
        JoinedEncoder(parts).look(path).whole @ weight.T + bias, np.mean(each, axis=0), rtol=1e-5
    )


def test_without_classifiers_of_the_same_classes_in_all_there_is_none() -> None:
    other = LiteEncoder(EfficientNetLite(replace(TINY, classes=7)).eval(), "other", "", 64)
    assert JoinedEncoder([_lite(0), other]).classifier is None
    assert JoinedEncoder([_lite(0), _lite(1, classifier=False)]).classifier is None
    assert JoinedEncoder([_lite(0), Watcher(_lite(0).frame((3, 2)))]).classifier is None


def test_names_joined_by_a_plus_open_joined_encoders(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[str, int]] = []

    def open_lite(name: str, input_px: int) -> LiteEncoder:
        opened.append((name, input_px))
        return _lite(len(opened), input_px)

    monkeypatch.setattr(look, "open_lite", open_lite)
    joined = open_encoder("efficientnet-lite0 + efficientnet-lite2", 64)
    assert isinstance(joined, JoinedEncoder)
    assert opened == [("efficientnet-lite0", 64), ("efficientnet-lite2", 64)]
    assert joined.size == 18
    with pytest.raises(UnknownName, match="Did you mean 'efficientnet-lite2'"):
        open_encoder("efficientnet-lite0+efficientnet-light2", 64)
