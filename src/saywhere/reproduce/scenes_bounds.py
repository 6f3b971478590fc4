"""What bounds captions of scenes in the world."""

from __future__ import annotations

from collections import Counter

import numpy as np

from saywhere.reproduce.caption_bounds import caption_bounds
from saywhere.reproduce.scenes_data import SCENE, named_place
from saywhere.reproduce.scenes_measure import ACCURACY, CAPTIONS, HeldOutScenes


def scene_bounds(test: HeldOutScenes) -> dict[str, dict[str, float]]:
    """By `caption_bounds.BLIND`, the commonest caption of training, and `CEILING`: measure → value."""
    learnt = Counter(one.text for one in test.folder.split("train", [SCENE]).captions)
    found: dict[str, dict[str, float]] = {}
    for key, (said, scores) in caption_bounds(learnt.most_common(1)[0][0], test.references(SCENE)).items():
        right = [named_place(text) == test.places[one] for one, text in said.items()]
        found[key] = {ACCURACY.name: 100 * float(np.mean(right)), **{c.name: scores[c.name] for c in CAPTIONS[1:]}}
    return found
