"""The world made ready for TraceVLM's ablations on the small body: scenes, narrations, and what is asked about them.

FOLDER/photos    a store: what an eye of the world sees of each scene, and its things
FOLDER/NAME      what one row learns from: train.jsonl, validation.jsonl and tokenizer.json
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from saywhere.atomic import write_atomic
from saywhere.build.riln.example import RilnExample, read_riln
from saywhere.build.riln.instructions import instruction_of
from saywhere.build.riln.pipeline import RilnSettings, build_riln
from saywhere.build.riln.templates import TemplateGenerator
from saywhere.core import Narrative
from saywhere.core.types import Floats32, Progress
from saywhere.models.mitr.image import GRID
from saywhere.models.tracevlm.examples import TASKS, Exchange, Instruction, asked, of_narrative, save_instructions
from saywhere.models.tracevlm.small_model import TOKENIZER
from saywhere.models.tracevlm.small_photos import (
    CLASSES,
    PHOTOS,
    PHOTOS_FIELDS,
    PHOTOS_KIND,
    WINDOWS,
    PhotoFeatures,
)
from saywhere.models.tracevlm.small_tokens import SmallTokenizer
from saywhere.models.tracevlm.task import TRAIN, VALIDATION
from saywhere.models.tracevlm.trajectory import Trajectory
from saywhere.reproduce.eyes import eye_scenes, patch_features, train_patch_eye
from saywhere.store import StoreWriter, is_finished
from saywhere.world import KINDS, Scene, make_scene, narrate

ORDER = ("caption", "trajectory", "narrate")
"""The tasks of pretraining, in the paper's order."""
TEST = "test.json"
MIXED, FIXED, BLIND, RILN = "mixed", "fixed", "blind", "riln"
"""What rows learn from: the tasks drawn at random; one after another; without trajectories in questions; and half of
it questions and dialogues of RILN."""


@dataclass(frozen=True, slots=True)
class TraceWorld:
    """How much world: narratives of each split, the longest to keep, in words, and what the eye learns from. talks:
    that each row learns from."""

    train: int = 1200
    validation: int = 60
    test: int = 200
    talks: int = 24_000
    max_words: int = 30
    pieces: int = 900
    seed: int = 3
    size: int = 128
    eye_scenes: int = 1200
    eye_steps: int = 250
    eye_size: int = 96


def told_scenes(world: TraceWorld) -> Iterator[tuple[Scene, Narrative]]:
    """Scenes with a narration that is short enough, in the order of their numbers; the last ones are the test."""
    index, found = 0, 0
    while found < world.train + world.validation + world.test:
        scene = make_scene(world.seed, index, world.size)
        told = narrate(scene, world.seed).narrative
        index += 1
        if 0 < len(told.words) <= world.max_words and len(told.trace) and told.word_boxes().located.any():
            found += 1
            yield scene, told


def held_narratives(folder: Path, world: TraceWorld) -> list[Narrative]:
    """What is measured with; nothing learns from it. Scenes are drawn again by their numbers."""
    numbers = msgspec.json.decode((folder / TEST).read_bytes(), type=list[int])
    return [narrate(make_scene(world.seed, number, world.size), world.seed).narrative for number in numbers]


def prepare_trace_world(folder: Path, world: TraceWorld, progress: Progress) -> None:
    """Write the folder, unless it is there."""
    if is_finished(folder / PHOTOS):
        return
    eye = train_patch_eye(
        eye_scenes(world.seed, world.eye_scenes, world.size, progress),
        *(world.eye_steps, world.seed, progress, world.eye_size),
    )
    total = world.train + world.validation + world.test
    pairs = []
    for pair in told_scenes(world):
        pairs.append(pair)
        progress("drawing and narrating scenes", len(pairs), total)
    narratives = [told for _, told in pairs]
    learnt, held = narratives[: world.train], narratives[world.train : world.train + world.validation]
    size_px = (world.size, world.size)
    tasks = [one for told in learnt for one in of_narrative(told, told.image_id, size_px)]
    reasoned = riln_talks(learnt, folder / "riln-examples", world.seed)
    checked = [one for told in held for one in of_narrative(told, told.image_id, size_px)]
    pieces = SmallTokenizer.learnt(_texts([*tasks, *reasoned]), world.pieces).to_json()
    for name, talks in _variants(tasks, reasoned, world).items():
        held_out = [_without_trajectory(one) for one in checked] if name == BLIND else checked
        save_instructions(folder / name / TRAIN, talks)
        save_instructions(folder / name / VALIDATION, held_out)
        with write_atomic(folder / name / TOKENIZER) as file:
            file.write(pieces.encode())
    with write_atomic(folder / TEST) as file:
        file.write(msgspec.json.encode([int(told.image_id) for told in narratives[-world.test :]]))
    seen = patch_features(eye, [scene for scene, _ in pairs])
    with StoreWriter(folder / PHOTOS, PHOTOS_KIND, PHOTOS_FIELDS, {"seed": world.seed}, resume=False) as writer:
        for (scene, _), patches in zip(pairs, seen, strict=True):
            writer.add(scene.image_id, **scene_features(scene, patches).row())


def scene_features(scene: Scene, patches: NDArray[np.float16]) -> PhotoFeatures:
    """A scene as the small body reads photos. patches: (64, size). Things are true ones, with the number of their kind
    as far as there are numbers."""
    known = [thing for thing in scene.things if thing.kind in KINDS]
    kinds = [list(KINDS).index(thing.kind) % len(CLASSES) for thing in known]
    return PhotoFeatures.marked(_windows(patches), [thing.box_xyxy for thing in known], kinds)


def _windows(patches: NDArray[np.float16]) -> Floats32:
    """(1 + 100, size): the mean, and for each window the patch that its middle lies in."""
    nearest = ((np.arange(WINDOWS) + 0.5) * GRID / WINDOWS).astype(int)
    grid = patches.astype(np.float32).reshape(GRID, GRID, -1)
    laid = grid[nearest][:, nearest].reshape(WINDOWS**2, -1)
    return np.concatenate([grid.mean(axis=(0, 1))[None], laid])


def riln_talks(narratives: Sequence[Narrative], folder: Path, seed: int) -> list[Instruction]:
    """Questions and dialogues of the built-in rules."""
    training = [replace(told, dataset_id=f"{told.dataset_id}_train") for told in narratives]
    build_riln(training, folder, TemplateGenerator(), RilnSettings(seed=seed))
    examples = (one for path in sorted(folder.glob("examples-*.jsonl")) for one in read_riln(path))
    return [instruction_of(one, one.image) for one in examples if isinstance(one, RilnExample)]


def _variants(
    tasks: Sequence[Instruction], reasoned: Sequence[Instruction], world: TraceWorld
) -> dict[str, list[Instruction]]:
    """What each row learns from, all of the same number of talks."""
    rng, each = np.random.default_rng(world.seed), world.talks // len(ORDER)
    ordered = [one for task in ORDER for one in _repeated([t for t in tasks if t.task == task], each, rng)]
    mixed = [ordered[place] for place in rng.permutation(len(ordered)).tolist()]
    half = [*mixed[: len(mixed) // 2], *_repeated(reasoned, len(mixed) - len(mixed) // 2, rng)]
    return {
        MIXED: mixed,
        FIXED: ordered,
        BLIND: [_without_trajectory(one) for one in mixed],
        RILN: [half[place] for place in rng.permutation(len(half)).tolist()],
    }


def _repeated(some: Sequence[Instruction], count: int, rng: np.random.Generator) -> list[Instruction]:
    order = rng.permutation(len(some)).tolist()
    return [some[place] for place in islice(cycle(order), count)]


def _without_trajectory(one: Instruction) -> Instruction:
    """The same, but nobody points in the question."""
    if one.task != "caption":
        return one
    return Instruction("describe", one.images, (asked("describe"), *one.turns[1:]), id=one.id)


def _texts(talks: Sequence[Instruction]) -> Iterator[str]:
    yield from TASKS.values()
    for talk in talks:
        for turn in talk.turns:
            yield from (part for part in turn.parts if isinstance(part, str))


def question_about(told: Narrative, size_px: tuple[int, int], *, pointing: bool) -> Exchange:
    """Asks for the caption of a narrative: along its trajectory, or of the image alone."""
    if not pointing:
        return asked("describe")
    question = of_narrative(told, told.image_id, size_px)[0].turns[0]
    return Exchange(question.role, tuple(part for part in question.parts if isinstance(part, str | Trajectory)))
