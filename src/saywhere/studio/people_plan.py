"""Who tells which photo: so many people for each photo, everybody about as many photos, the same for the same seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

from saywhere.core.errors import InvalidValue


def planned(
    photos: Sequence[str],
    annotators: Sequence[str],
    each: int,
    seed: int,
    held: Mapping[str, Sequence[str]],
    barred: Mapping[str, Sequence[str]],
) -> list[tuple[str, str]]:
    """(photo, annotator) for every place that is free, so that each photo has `each` annotators.

    Who has fewest photos comes first; of equals, who shares fewest photos with the others of this one, so that every
    two people can be compared; of those, by lot. held: photo → annotators that count already. barred: photo → further
    ones who must not get it again.

    >>> planned(["p", "q"], ["A", "B", "C", "D"], 2, 0, {}, {})
    [('q', 'D'), ('q', 'C'), ('p', 'A'), ('p', 'B')]
    """
    if not 1 <= each <= len(annotators):
        reason = f"{each} for each photo, of {len(annotators)} who take part"
        raise InvalidValue("annotators", reason, "let more take part: saywhere people add")
    rng = random.Random(seed)
    load, shared = Counter(dict.fromkeys(annotators, 0)), Counter[frozenset[str]]()
    for people in held.values():
        _count(people, load, shared)
    plan = []
    for photo in rng.sample(sorted(photos), len(photos)):
        chosen = list(held.get(photo, ()))
        free = [code for code in annotators if code not in chosen and code not in barred.get(photo, ())]
        rng.shuffle(free)
        for _ in range(each - len(chosen)):
            if not free:
                break
            best = min(free, key=lambda one: (load[one], sum(shared[frozenset((one, other))] for other in chosen)))
            free.remove(best)
            load[best] += 1
            shared.update(frozenset((best, other)) for other in chosen)
            chosen.append(best)
            plan.append((photo, best))
    return plan


def _count(people: Sequence[str], load: Counter[str], shared: Counter[frozenset[str]]) -> None:
    for at, code in enumerate(people):
        load[code] += 1
        shared.update(frozenset((code, other)) for other in people[:at])
