"""Questions and answers as in VQA v2, true of their scenes, with answer priors that can be set for each split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from saywhere.core.errors import InvalidValue, UnknownName
from saywhere.world.chance import pick, shuffled, stream
from saywhere.world.colours import PALETTE
from saywhere.world.english import garment, with_article
from saywhere.world.kinds import KINDS, MIGHT_BE
from saywhere.world.places import PLACES
from saywhere.world.relations import relations
from saywhere.world.scene import Scene

Priors = Mapping[str, Mapping[str, float]]
"""Question type → answer → share. "what color is the/cup" is for that kind alone; types without an entry stay free."""

TYPES: dict[str, str] = {
    "is there a": "yes/no",
    "is the": "yes/no",
    "how many": "number",
    "what color is the": "other",
    "what is": "other",
    "where is the": "other",
    "where was": "other",
}
"""Question types with their answer types."""

CHANGED_PRIORS: dict[str, dict[str, dict[str, float]]] = {
    "train": {
        "is there a": {"yes": 0.8, "no": 0.2},
        "is the": {"yes": 0.2, "no": 0.8},
        "how many": {"0": 0.1, "1": 0.7, "2": 0.15, "3": 0.05},
        "what color is the": {"red": 0.3, "white": 0.25, "brown": 0.2, "blue": 0.1, "green": 0.1, "black": 0.05},
    },
    "test": {
        "is there a": {"yes": 0.2, "no": 0.8},
        "is the": {"yes": 0.8, "no": 0.2},
        "how many": {"0": 0.2, "1": 0.15, "2": 0.45, "3": 0.2},
        "what color is the": {"red": 0.08, "white": 0.07, "brown": 0.1, "blue": 0.3, "green": 0.25, "black": 0.2},
    },
}
"""Priors that turn round between training and test, as in VQA-CP."""

MILD_PRIORS: dict[str, dict[str, dict[str, float]]] = {
    "train": {
        "is there a": {"yes": 0.65, "no": 0.35},
        "is the": {"yes": 0.35, "no": 0.65},
        "how many": {"0": 0.15, "1": 0.5, "2": 0.25, "3": 0.1},
        "what color is the": {"red": 0.25, "white": 0.2, "brown": 0.2, "blue": 0.13, "green": 0.12, "black": 0.1},
    },
    "test": {
        "is there a": {"yes": 0.35, "no": 0.65},
        "is the": {"yes": 0.65, "no": 0.35},
        "how many": {"0": 0.25, "1": 0.25, "2": 0.35, "3": 0.15},
        "what color is the": {"red": 0.12, "white": 0.12, "brown": 0.13, "blue": 0.23, "green": 0.2, "black": 0.2},
    },
}
"""Priors that turn round, but leave a network that looks more to gain than one that only guesses."""


def balanced(priors: Mapping[str, Priors]) -> dict[str, dict[str, float]]:
    """Half of training's and half of the test's: what a network should learn from that is to know no prior.

    >>> balanced(MILD_PRIORS)["is there a"]
    {'yes': 0.5, 'no': 0.5}
    """
    train, test = priors["train"], priors["test"]
    return {kind: {answer: (train[kind][answer] + test[kind][answer]) / 2 for answer in train[kind]} for kind in train}


_PER_TYPE = 3
"""Candidates that one scene gives for one type and answer at most."""

_ASKED_RELATIONS = ("on", "next to", "left of", "right of", "in front of", "behind")
_PEOPLE, _MOST_WRONG = 10, 3
_DISAGREEING_SHARE = 0.06


@dataclass(frozen=True, slots=True)
class SceneQuestion:
    """One question about one scene. things: indices of the things that one must look at to answer; kind: it asks about.

    scene: its number. answers: what ten people said; `answer` is the true one and the most frequent.
    """

    text: str
    question_type: str
    answer: str
    things: tuple[int, ...]
    kind: str
    scene: int = -1
    answers: tuple[str, ...] = ()

    @property
    def answer_type(self) -> str:
        return TYPES[self.question_type]


def candidates(scene: Scene, seed: int = 0) -> tuple[SceneQuestion, ...]:
    """True questions of every type, a few for each answer, in an order drawn by chance."""
    rng = stream(seed, scene.index, "questions")
    counts: dict[tuple[str, str], int] = {}
    chosen = []
    for draft in shuffled(
        rng, [*_presence(rng, scene), *_numbers(scene), *_colours(rng, scene), *_relations(scene), *_places(scene)]
    ):
        key = (draft.question_type, draft.answer)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= _PER_TYPE:
            chosen.append(replace(draft, scene=scene.index, answers=_human_answers(rng, draft)))
    return tuple(chosen)


def ask(
    scenes: Iterable[Scene], seed: int = 0, priors: Priors | None = None, per_scene: int = 4
) -> tuple[SceneQuestion, ...]:
    """About `per_scene` questions a scene, the types in equal shares, their answers distributed as `priors` says."""
    listed = list(scenes)
    return choose([candidates(scene, seed) for scene in listed], seed, priors, per_scene)


def choose(
    pools: Sequence[Sequence[SceneQuestion]], seed: int, priors: Priors | None, per_scene: int
) -> tuple[SceneQuestion, ...]:
    """Of the candidates of each scene, those that fit the priors.

    A type whose priors ask for more of an answer than there is gives fewer questions, never other shares.
    """
    check_priors(priors or {})
    if per_scene < 0:
        raise InvalidValue("per_scene", f"is {per_scene}: must not be negative")
    # A stream of its own: the scenes' streams end below this number.
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, len(pools), 77])))
    by_type: dict[str, list[SceneQuestion]] = {}
    for pool in pools:
        for question in pool:
            by_type.setdefault(_prior_key(question, priors or {}), []).append(question)
    wanted = dict.fromkeys(by_type, 0.0)
    for question_type in TYPES:
        keys = [key for key in by_type if key.split("/")[0] == question_type]
        total = sum(len(by_type[key]) for key in keys)
        for key in keys:
            wanted[key] = per_scene * len(pools) / len(TYPES) * len(by_type[key]) / total
    chosen: list[SceneQuestion] = []
    for key, questions in sorted(by_type.items()):
        mixed = shuffled(rng, questions)
        prior = (priors or {}).get(key)
        chosen += _fitting(mixed, prior, wanted[key], key) if prior else mixed[: round(wanted[key])]
    return tuple(sorted(chosen, key=lambda question: question.scene))


def check_priors(priors: Priors) -> None:
    """Refuse unknown question types and shares that are no distribution."""
    for key, shares in priors.items():
        if key.split("/")[0] not in TYPES:
            raise UnknownName("question type", key, TYPES)
        if any(share < 0 for share in shares.values()) or abs(sum(shares.values()) - 1) > 1e-6:
            raise InvalidValue(
                f"priors of {key!r}", f"sum to {sum(shares.values()):g} or are negative, not a distribution"
            )


def _prior_key(question: SceneQuestion, priors: Priors) -> str:
    own = f"{question.question_type}/{question.kind}"
    return own if own in priors else question.question_type


def _fitting(
    questions: Sequence[SceneQuestion], prior: Mapping[str, float], wanted: float, key: str
) -> list[SceneQuestion]:
    pools: dict[str, list[SceneQuestion]] = {answer: [] for answer, share in prior.items() if share > 0}
    for question in questions:
        if question.answer in pools:
            pools[question.answer].append(question)
    for answer, pool in pools.items():
        if not pool:
            raise InvalidValue(
                f"priors of {key!r}",
                f"ask for the answer {answer!r}, which no question has",
                "make more scenes, or leave it out",
            )
    total = min(wanted, *(len(pool) / prior[answer] for answer, pool in pools.items()))
    return [question for answer, pool in pools.items() for question in pool[: round(total * prior[answer])]]


def _human_answers(rng: np.random.Generator, draft: SceneQuestion) -> tuple[str, ...]:
    """Ten answers: nearly all people give the true one."""
    if TYPES[draft.question_type] == "yes/no":
        other = "no" if draft.answer == "yes" else "yes"
    elif TYPES[draft.question_type] == "number":
        other = str(int(draft.answer) + 1)
    else:
        other = "not sure"
    wrong = min(_MOST_WRONG, int((rng.random(_PEOPLE) < _DISAGREEING_SHARE).sum()))
    return (draft.answer,) * (_PEOPLE - wrong) + (other,) * wrong


def _by_kind(scene: Scene) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for i in scene.objects:
        found.setdefault(scene.things[i].kind, []).append(i)
    return found


def _certain(scene: Scene, kind: str) -> bool:
    """Whether nothing in the scene could be taken for this kind by mistake."""
    like = MIGHT_BE.get(kind, frozenset())
    return KINDS[kind].countable and not any(thing.kind in like for thing in scene.things)


def _clear_kinds(scene: Scene) -> dict[str, list[int]]:
    """Kinds of which every single thing is clearly visible, so that nobody can be in doubt about them."""
    found = _by_kind(scene).items()
    return {k: v for k, v in found if all(scene.things[i].clear for i in v) and _certain(scene, k)}


def _missing(scene: Scene) -> tuple[list[str], list[str]]:
    """Kinds that are certainly not there: those usual in such a place, and all."""
    usual = {kind for slot in PLACES[scene.place].slots for kind in slot.kinds}
    present = set(_by_kind(scene))
    absent = [kind for kind in KINDS if kind not in present and _certain(scene, kind)]
    return [kind for kind in absent if kind in usual], absent


def _presence(rng: np.random.Generator, scene: Scene) -> Iterator[SceneQuestion]:
    for kind, indices in _clear_kinds(scene).items():
        yield SceneQuestion(f"Is there {with_article(kind)} in the picture?", "is there a", "yes", tuple(indices), kind)
    likely, missing = _missing(scene)
    # Half of the absent things would be likely here: the place alone must not give the answer away.
    for kind in [*shuffled(rng, likely)[:2], *shuffled(rng, missing)[:2]]:
        yield SceneQuestion(f"Is there {with_article(kind)} in the picture?", "is there a", "no", (), kind)


def _numbers(scene: Scene) -> Iterator[SceneQuestion]:
    for kind, indices in _clear_kinds(scene).items():
        yield SceneQuestion(
            f"How many {KINDS[kind].many} are there?", "how many", str(len(indices)), tuple(indices), kind
        )
    for kind in _missing(scene)[0]:
        yield SceneQuestion(f"How many {KINDS[kind].many} are there?", "how many", "0", (), kind)


def _colours(rng: np.random.Generator, scene: Scene) -> Iterator[SceneQuestion]:
    for kind, indices in _clear_kinds(scene).items():
        if len(indices) > 1:
            continue
        thing, about = scene.things[indices[0]], KINDS[kind]
        if about.named_by_colour:
            what = f"{kind}'s {garment(kind, thing.pose)}" if about.wears else kind
            yield SceneQuestion(f"What color is the {what}?", "what color is the", thing.colour, tuple(indices), kind)
            yield SceneQuestion(f"Is the {what} {thing.colour}?", "is the", "yes", tuple(indices), kind)
            other = pick(
                rng, [name for name in (about.colours if len(about.colours) > 1 else PALETTE) if name != thing.colour]
            )
            yield SceneQuestion(f"Is the {what} {other}?", "is the", "no", tuple(indices), kind)
        if thing.pose and thing.group == "person" and kind != "skier":
            other = pick(rng, [pose for pose in ("standing", "walking", "sitting") if pose != thing.pose])
            if thing.pose != "waving":
                yield SceneQuestion(f"Is the {kind} {thing.pose}?", "is the", "yes", tuple(indices), kind)
            yield SceneQuestion(
                f"Is the {kind} {'sitting' if thing.pose == 'waving' else other}?", "is the", "no", tuple(indices), kind
            )


def _relations(scene: Scene) -> Iterator[SceneQuestion]:
    """ "What is on the table?", where one kind of thing is the only right answer."""
    single = {indices[0] for indices in _clear_kinds(scene).values() if len(indices) == 1}
    found: dict[tuple[str, int], list[int]] = {}
    for relation in relations(scene):
        if relation.other in single and relation.name in _ASKED_RELATIONS:
            found.setdefault((relation.name, relation.other), []).append(relation.subject)
    for (name, other), subjects in found.items():
        kinds = {scene.things[i].kind for i in subjects}
        if len(kinds) == 1 and all(scene.things[i].clear for i in subjects):
            where = f"to the {name}" if name in ("left of", "right of") else name
            text = f"What is {where} the {scene.things[other].kind}?"
            yield SceneQuestion(text, "what is", next(iter(kinds)), (*subjects, other), scene.things[other].kind)


def _places(scene: Scene) -> Iterator[SceneQuestion]:
    for kind, indices in _clear_kinds(scene).items():
        on = scene.things[indices[0]].on
        if len(indices) == 1 and on is not None and scene.things[on].kind not in ("hill", "roof", "skyline"):
            preposition = "in" if scene.things[on].kind == "sky" else "on"
            answer = f"{preposition} {scene.things[on].kind}"
            yield SceneQuestion(f"Where is the {kind}?", "where is the", answer, (indices[0], on), kind)
    yield SceneQuestion("Where was the picture taken?", "where was", scene.place, (), scene.place)
