"""The paper's figures, drawn of the networks trained here: matrices, densities, confidences, F1 by place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from saywhere.explain.attention_blocks import AttentionMatrix, attention_matrix
from saywhere.models.attended import TokenKind
from saywhere.models.oscar import Oscar
from saywhere.plots.bars import draw_bars
from saywhere.plots.distributions import draw_densities, draw_spreads
from saywhere.plots.lines import draw_lines
from saywhere.plots.matrices import draw_layers, draw_matrices
from saywhere.plots.matrix_grid import MatrixBlock, MatrixSpan
from saywhere.reproduce._sheets import drawn
from saywhere.reproduce.results import Figure, LevelExample, Line, NamedBox
from saywhere.reproduce.scenes_data import OBJECT, SCENE, named_place
from saywhere.reproduce.scenes_measure import ABLATED, BLOCKS, AblatedCaption, HeldOutScenes, SceneMeasures
from saywhere.world import kinds_named

Measured = Mapping[tuple[str, int], SceneMeasures]
"""Row and seed → what was measured."""

BEFORE, AFTER, LONGER = "objects", "scenes", "longer"
_SHORT = {BEFORE: "before", AFTER: "after scene tuning", LONGER: "after more objects"}
_NAMES = {TokenKind.TAG: "tags", TokenKind.REGION: "regions"}
_BLOCKS = (
    MatrixBlock("vision→vision", "regions", "regions"),
    MatrixBlock("vision→tag", "regions", "tags"),
    MatrixBlock("tag→vision", "tags", "regions"),
)


def scenes_figures(seeds: Sequence[int], found: Measured, test: HeldOutScenes, models: dict[str, Path]) -> list[Figure]:
    """All figures. models: row → folder of a trained network, before and after."""
    return [
        *_matrices(test, {_SHORT[key]: Oscar.from_pretrained(folder) for key, folder in models.items()}),
        _density(seeds, found),
        _separator(seeds, found),
        _confidences(seeds, found),
        _shifts(seeds, found),
        _classes(seeds, found),
    ]


def shown_image(test: HeldOutScenes) -> str:
    """The test image for matrices: the first with at least 7 things, so that there is something to see."""
    return next((one for one in test.ids if len(test.image(one).tags) >= 7), test.ids[0])


def _matrices(test: HeldOutScenes, models: dict[str, Oscar]) -> list[Figure]:
    name = shown_image(test)
    image = test.image(name)
    layers: dict[str, list[AttentionMatrix]] = {}
    for title, model in models.items():
        with torch.no_grad():
            attended = model.attend([image])
        layers[title] = [attention_matrix(attended, 0, image, layer=i) for i in range(len(attended.layers))]
    first = {title: matrices[0].values for title, matrices in layers.items()}
    spans = _spans(next(iter(layers.values()))[0])
    every = {
        title: {f"layer {i + 1}": matrix.values for i, matrix in enumerate(matrices)}
        for title, matrices in layers.items()
    }
    about = f"Test image {name}, a {test.places[name]}: the largest share over heads, from each row to each column."
    return [
        drawn(
            *(
                "Attention matrices of the first layer (the paper's Fig. 3)",
                partial(draw_matrices, first, spans, _BLOCKS),
            ),
            *("Two attention matrices side by side, before and after scene tuning, with three blocks outlined", about),
        ),
        drawn(
            *("Attention matrices of all layers (Fig. 11)", partial(draw_layers, every, spans)),
            *("Small attention matrices of every layer, before and after scene tuning", about),
        ),
    ]


def _spans(matrix: AttentionMatrix) -> list[MatrixSpan]:
    return [
        MatrixSpan(
            _NAMES.get(span.part, matrix.labels[span.start]),
            tuple(matrix.labels[span.start : span.stop]),
            5 if span.part is TokenKind.REGION else 1,
        )
        for span in matrix.spans
    ]


def _density(seeds: Sequence[int], found: Measured) -> Figure:
    panels = {
        ("all the relations" if block == "all" else block): {
            _SHORT[key]: np.array(
                [
                    (std, mass)
                    for seed in seeds
                    for std, mass in zip(*(found[key, seed].blocks[block][m] for m in ("std", "mass")), strict=True)
                ]
            )
            for key in (BEFORE, AFTER, LONGER)
        }
        for block in BLOCKS
    }
    return drawn(
        *("Standard deviation against mass of attention (Fig. 4)", partial(draw_densities, panels, "std", "mass")),
        *("Kernel densities of standard deviation and mass, for networks before and after tuning",),
        *("First layer, largest share over heads; a point for each image and seed.",),
    )


def _separator(seeds: Sequence[int], found: Measured) -> Figure:
    panels = {
        _SHORT[key]: {
            f"from {part}s": np.mean([found[key, seed].special[part] for seed in seeds], axis=0).tolist()
            for part in found[key, seeds[0]].special
        }
        for key in (BEFORE, AFTER)
    }
    return drawn(
        *("What [SEP] receives (Fig. 10)", partial(draw_lines, panels, "share of attention", "layer")),
        *("The share of attention that the separator receives, layer by layer",),
        *("Mean over heads, images and seeds.",),
    )


def _confidences(seeds: Sequence[int], found: Measured) -> Figure:
    values = {
        f"without {k}": {_SHORT[key]: _joined(seeds, found, key, "confidences", k) for key in (BEFORE, AFTER, LONGER)}
        for k in ABLATED
    }
    return drawn(
        *("Confidence of captions that stayed as they were (Fig. 6)", partial(draw_spreads, values, "confidence", "")),
        *("Boxes of confidences after one, two and three things were taken away",),
        *("exp of the mean log-probability of a caption's words, after the ablation.",),
    )


def _shifts(seeds: Sequence[int], found: Measured) -> Figure:
    values = {
        f"without {k}": {_SHORT[key]: _joined(seeds, found, key, "shifts", k) for key in (BEFORE, AFTER, LONGER)}
        for k in ABLATED
    }
    return drawn(
        *("How confidence shifts (Fig. 7)", partial(draw_spreads, values, "confidence before − after", "")),
        *("Boxes of shifts of confidence after one, two and three things were taken away",),
        *("Below 0 the network is surer without the things.",),
    )


def _joined(seeds: Sequence[int], found: Measured, key: str, what: str, k: int) -> list[float]:
    return [value for seed in seeds for value in getattr(found[key, seed], what)[str(k)]]


def _classes(seeds: Sequence[int], found: Measured) -> Figure:
    support = found[BEFORE, seeds[0]].support
    ordered = dict(sorted(support.items(), key=lambda one: -one[1]))
    values = {
        _SHORT[key]: {
            place: [found[key, seed].classes[""].get(place, float("nan")) for seed in seeds] for place in ordered
        }
        for key in (BEFORE, AFTER, LONGER)
    }
    return drawn(
        *(
            "F1 of the probe by place, 50/50 (Fig. 9)",
            partial(draw_bars, values, ordered, "F1 of a random forest", 1.0),
        ),
        *("Bars of F1 for every place, before and after tuning",),
        *("n: images of the place, half of them to test on.",),
    )


def level_examples(out: Path, test: HeldOutScenes, found: Measured, seed: int, most: int) -> list[LevelExample]:
    """Test images with captions of both levels, whole and with what tells their place taken away."""
    before, after = found[BEFORE, seed], found[AFTER, seed]
    objects = {(one.image, one.objects): one for one in before.ablated}
    some = [one for one in after.ablated if (one.image, one.objects) in objects]
    some.sort(key=lambda one: (one.before == one.after, one.image))
    changed = [one for one in some if one.before != one.after][: most // 2]
    places = {test.places[one.image] for one in changed}
    for one in some:
        # After those that change, one of each place that is left.
        if len(changed) < most and test.places[one.image] not in places:
            places.add(test.places[one.image])
            changed.append(one)
    return [_example(out, test, one, objects[one.image, one.objects]) for one in changed]


def _example(out: Path, test: HeldOutScenes, scene: AblatedCaption, objects: AblatedCaption) -> LevelExample:
    image, place = test.image(scene.image), test.places[scene.image]
    there = set(image.tags)
    lines = []
    for level, told in ((OBJECT, objects), (SCENE, scene)):
        for label, text, sure in (
            (level, told.before, told.confidence_before),
            (f"{level}, ablated", told.after, told.confidence_after),
        ):
            good = named_place(text) == place if level == SCENE else kinds_named(text) <= there
            lines.append(Line(label, text, sure, good))
    boxes = [] if image.tag_boxes_xyxy is None else image.tag_boxes_xyxy.tolist()
    gone = [NamedBox(tag, tuple(box)) for tag, box in zip(image.tags, boxes, strict=True) if tag in scene.objects]
    photo = test.folder.folder / "photos" / f"{scene.image}.png"
    return LevelExample(str(photo.relative_to(out)), place, tuple(lines), tuple(gone))


def informative_things(found: SceneMeasures) -> str:
    """The paper's Table 3: for each place the things that tell it best."""
    return "; ".join(f"{place}: {', '.join(things)}" for place, things in found.informative.items())
