"""What bounds MITR's rows: guesses that see no photo from below, another narrator from above."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from saywhere.core.narrative import Narrative
from saywhere.metrics import lbm_many
from saywhere.models.mitr.batch import NarrativeExample, example_of
from saywhere.models.mitr.prepared import NarrativeItems, Prepared
from saywhere.reproduce.caption_metrics import CaptionMetrics
from saywhere.world import make_scene, narrate, point_again

BLIND, CEILING = "blind", "ceiling"
_ANOTHER = 1
NARRATORS = 15
"""So many point at the same words again."""
_EVERYWHERE = np.array([[0.0, 0.0, 1.0, 1.0]])


def guesses(prepared: Prepared, test: NarrativeItems) -> dict[str, list[NDArray[np.float64]]]:
    """Baselines that see no photo: for each, boxes (T, 4) for every test narrative."""
    train = prepared.split("train")
    by_word: dict[int, list[NDArray[np.float32]]] = defaultdict(list)
    for one in (train[i] for i in range(len(train))):
        for word, box, located in zip(one.words.tolist(), one.boxes, one.located, strict=True):
            if located:
                by_word[word].append(box[:4])
    everywhere = np.concatenate([np.stack(rows) for rows in by_word.values()]).mean(axis=0)
    prior = {word: np.mean(rows, axis=0) for word, rows in by_word.items()}
    items = [test[i] for i in range(len(test))]
    return {
        "the whole image": [np.tile([0.0, 0.0, 1.0, 1.0], (len(one.words), 1)) for one in items],
        "a box in the centre": [np.tile([0.25, 0.25, 0.75, 0.75], (len(one.words), 1)) for one in items],
        "the mean box": [np.tile(everywhere, (len(one.words), 1)).astype(np.float64) for one in items],
        "the mean box of the word": [
            np.array([prior.get(word, everywhere) for word in one.words.tolist()], dtype=np.float64) for one in items
        ],
    }


def distances(boxes: Sequence[NDArray[np.float64]], test: Sequence[NarrativeExample]) -> dict[str, float]:
    """LBM at the located words."""
    truths = [one.boxes[one.located][:, :4].astype(np.float64) for one in test]
    placed = [guess[one.located] for guess, one in zip(boxes, test, strict=True)]
    return {f"LBM (k={k})": float(lbm_many(placed, truths, k).mean()) for k in (0, 1)}


def commonest_narration(prepared: Prepared) -> str:
    """What narrators say most often, word by word: the likeliest next word given the place, as long as most narrate."""
    train = prepared.split("train")
    lengths = [len(train[i].words) for i in range(len(train))]
    longest = int(np.median(lengths))
    columns = [[int(train[i].words[t]) for i in range(len(train)) if lengths[i] > t] for t in range(longest)]
    return prepared.vocabulary.text([int(np.bincount(column).argmax()) for column in columns])


def blind_scores(prepared: Prepared, items: NarrativeItems, metrics: CaptionMetrics) -> dict[str, dict[str, float]]:
    """Test → measure → value of what knows words but sees no photo: each word's mean box, the commonest narration."""
    usual = guesses(prepared, items)["the mean box of the word"]
    said = metrics.scores(dict.fromkeys((str(i) for i in range(len(items))), commonest_narration(prepared)))
    return {"trace": distances(usual, list(items)), "caption": said, "joint": said}


def ceiling_scores(prepared: Prepared, items: NarrativeItems, metrics: CaptionMetrics) -> dict[str, dict[str, float]]:
    """Test → measure → value of simulated narrators of the same scenes, in the world alone.

    In Task 1 they say the same words and point anew; the median of their boxes is about the nearest that any guess can
    come, and nearer than one narrator comes to another. In Task 3 there is one, and the words are the narrator's own.
    """
    same, own = zip(*_narrated_again(prepared, items), strict=True)
    pointed = [_median(some, items[i], prepared) for i, some in enumerate(same)]
    texts = {str(i): _text(one, items[i], prepared) for i, one in enumerate(own)}
    traces = [_located(one) for one in own]
    truths = [one.boxes[one.located][:, :4].astype(np.float64) for one in items]
    found = {f"LBM (k={k})": float(lbm_many(traces, truths, k).mean()) for k in (0, 1)}
    return {"trace": distances(pointed, list(items)), "joint": metrics.scores(texts) | found}


def _narrated_again(prepared: Prepared, items: NarrativeItems) -> Iterator[tuple[list[Narrative], Narrative]]:
    """Of each scene: its narration pointed at anew by several, and another one."""
    world = prepared.about["world"]
    seed, size = int(world["seed"]), int(world["size"])
    for i in range(len(items)):
        scene = make_scene(seed, int(items.image_name(i)), size)
        told = narrate(scene, seed)
        again = [point_again(scene, told, seed, part) for part in range(1, NARRATORS + 1)]
        yield again, narrate(scene, seed, part=_ANOTHER).narrative


def _median(narratives: Sequence[Narrative], item: NarrativeExample, prepared: Prepared) -> NDArray[np.float64]:
    """(T, 4) the middle of where several pointed at each word; the whole image where none did."""
    every = []
    for narrative in narratives:
        one = example_of(item.image, narrative, prepared.vocabulary)
        every.append(np.where(one.located[:, None], one.boxes[:, :4], np.nan)[: len(item.words)])
    boxes = np.stack(every)
    nobody = np.isnan(boxes).all(axis=(0, 2))
    boxes[:, nobody] = _EVERYWHERE
    return np.asarray(np.nanmedian(boxes, axis=0), dtype=np.float64)


def _text(narrative: Narrative, item: NarrativeExample, prepared: Prepared) -> str:
    """As the vocabulary writes it, which is how references and rows are written."""
    return prepared.vocabulary.text(example_of(item.image, narrative, prepared.vocabulary).words.tolist())


def _located(narrative: Narrative) -> NDArray[np.float64]:
    placed = narrative.word_boxes()
    return placed.boxes_xyxy[placed.located] if placed.located.any() else _EVERYWHERE
