"""Writing captions: greedy, beam and nucleus, by the search of `saywhere.models.search`."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from saywhere.core.errors import InvalidValue
from saywhere.language.vocabulary import BEGIN_ID, END_ID, PAD_ID
from saywhere.models.common.modes import eval_mode
from saywhere.models.region_features import RegionFeatures
from saywhere.models.search import BEAM, GenerationConfig, Hypothesis, Rules, Steps, Written, search, uniform_draws
from saywhere.models.updown.batch import collate_features
from saywhere.models.updown.captioner import EncodedRegions, UpDnCaptioner


class CaptionSteps(Steps):
    """A captioner that has looked at some images, for `search`. A token is a word's id."""

    def __init__(self, model: UpDnCaptioner, encoded: EncodedRegions) -> None:
        self._model, self._encoded = model, encoded
        self._state = model.begin(len(encoded.present))

    def start(self) -> Tensor:
        return self.advance(torch.full((len(self._encoded.present),), BEGIN_ID, device=self._model.device))

    def advance(self, tokens: Tensor) -> Tensor:
        self._state, _ = self._model.step(self._encoded, self._state, tokens)
        logits: Tensor = self._model.say(self._state.language[0])
        return logits

    def reorder(self, rows: Tensor) -> None:
        self._encoded, self._state = self._encoded.take(rows), self._state.take(rows)


def write(model: UpDnCaptioner, encoded: EncodedRegions, how: GenerationConfig = BEAM) -> list[Hypothesis]:
    """The words for each image that was looked at, the unknown word never among them. In eval mode only."""
    most = how.most_words(model.config.max_words)
    unknown = None if model.vocabulary is None else model.vocabulary.unknown_id
    forbidden = (PAD_ID, BEGIN_ID) if unknown is None else (PAD_ID, BEGIN_ID, unknown)
    draws = None
    if how.method == "nucleus":
        # What an image shows, without the padding that depends on its neighbours.
        keys = [seen[there].cpu().numpy().tobytes() for seen, there in zip(encoded.seen, encoded.present, strict=True)]
        draws = uniform_draws(keys, how.seed, most)
    with torch.no_grad():
        return search(CaptionSteps(model, encoded), Rules(how, most, (END_ID,), forbidden), draws)


def caption(
    model: UpDnCaptioner, images: Sequence[RegionFeatures], how: GenerationConfig = BEAM
) -> list[tuple[Written, Tensor]]:
    """A caption for each image, with where it looked for each of its words: (words, r), summing to 1."""
    if model.vocabulary is None:
        raise InvalidValue("captioner", "does not know what its word ids mean", "attach a vocabulary")
    if not images:
        return []
    regions, boxes, present = (part.to(model.device) for part in collate_features(images, model.config.region_size))
    with eval_mode(model):
        said = write(model, model.look(regions, present, boxes=boxes), how)
        spoken = model(regions, present, _read_again(said).to(model.device), boxes=boxes)
    return [
        (
            Written(model.vocabulary.text(one.tokens), one.score, one.logprobs, one.ended),
            looked[: len(one.tokens), : len(image)].cpu(),
        )
        for one, looked, image in zip(said, spoken.attention, images, strict=True)
    ]


def _read_again(said: Sequence[Hypothesis]) -> Tensor:
    """(b, t) what is read to say these words: the beginning, then each of them but the last."""
    longest = max(1, *(len(one.tokens) for one in said))
    rows = [(BEGIN_ID, *one.tokens)[:longest] for one in said]
    return torch.tensor([[*row, *[PAD_ID] * (longest - len(row))] for row in rows])
