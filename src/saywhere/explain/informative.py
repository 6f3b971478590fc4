"""Which objects tell a scene: pointwise mutual information of scenes and objects (Sec. 6.1 of the paper, Table 3)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.core.types import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class SceneObjects:
    """In how many images scenes and objects occur, and occur together. An object counts once in an image.

    scenes: s names, by falling number of images. objects: o names, in alphabetical order. scene_images: (s,).
    object_images: (o,). together: (s, o). images: those with a scene. unlabelled: those without, which count nowhere.
    """

    scenes: tuple[str, ...]
    objects: tuple[str, ...]
    scene_images: Ints
    object_images: Ints
    together: Ints
    images: int
    unlabelled: int

    @classmethod
    def of(cls, objects: Sequence[Collection[str]], scenes: Sequence[str | None]) -> SceneObjects:
        """Of each image the names of its objects, and its scene; None if that is not known."""
        if len(objects) != len(scenes):
            raise InvalidValue("scenes", f"there are {len(scenes)} for {len(objects)} images")
        labelled = [(scene, set(names)) for names, scene in zip(objects, scenes, strict=True) if scene is not None]
        sizes = {scene: sum(other == scene for other, _ in labelled) for scene in {scene for scene, _ in labelled}}
        rows = sorted(sizes, key=lambda scene: (-sizes[scene], scene))
        columns = sorted({name for _, names in labelled for name in names})
        row, column = ({name: i for i, name in enumerate(names)} for names in (rows, columns))
        together = np.zeros((len(rows), len(columns)), np.int64)
        for scene, names in labelled:
            together[row[scene], [column[name] for name in names]] += 1
        counts = np.array([sizes[scene] for scene in rows], np.int64)
        unlabelled = len(objects) - len(labelled)
        return cls(tuple(rows), tuple(columns), counts, together.sum(axis=0), together, len(labelled), unlabelled)

    def pmi(self, smoothing: float = 0.0) -> Floats:
        """(s, o) log2 of P(object | scene) / P(object): bits; 0 is "no more often here than elsewhere".

        −∞ for what never occurs together, unless smoothed. smoothing: so many images with the object, and as many
        without it, are added to every scene: rare pairs then tell less.
        """
        if not (np.isfinite(smoothing) and smoothing >= 0):
            raise InvalidValue("smoothing", f"{smoothing} is not a number of at least 0")
        here = (self.together + smoothing) / (self.scene_images[:, None] + 2 * smoothing)
        added = smoothing * len(self.scenes)
        anywhere = (self.object_images + added) / (self.images + 2 * added)
        ratio = here / anywhere
        bits: Floats = np.log2(ratio, out=np.full_like(ratio, -np.inf), where=ratio > 0)
        return bits

    def most_informative(self, scene: str, k: int = 3, *, min_count: int = 5, smoothing: float = 0.0) -> list[str]:
        """At most k objects with the highest PMI above 0 with a scene, the best first: those that ablation removes.

        min_count: images in which both must occur: PMI is highest for what was seen once. Equal PMI: what occurs with
        the scene more often comes first, then the alphabet, because an ablation needs an order.
        """
        if scene not in self.scenes:
            raise UnknownName("scene", scene, self.scenes)
        if k < 1 or min_count < 1:
            raise InvalidValue("k and min_count", f"are {k} and {min_count}, not at least 1")
        row = self.scenes.index(scene)
        bits, counts = self.pmi(smoothing)[row], self.together[row]
        fit = [i for i in range(len(self.objects)) if counts[i] >= min_count and bits[i] > 0]
        fit.sort(key=lambda i: (-bits[i], -counts[i], self.objects[i]))
        return [self.objects[i] for i in fit[:k]]
