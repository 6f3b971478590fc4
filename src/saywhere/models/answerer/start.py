"""To begin where another answering network stopped, though it knew fewer answers or kinds of places."""

from __future__ import annotations

import torch

from saywhere.core.errors import InvalidValue
from saywhere.models.answerer.network import BOX_NUMBERS, AnswerNet

_SHAPE = ("text_size", "width", "heads", "layers", "inner", "counters", "blind")


def begin_as(network: AnswerNet, other: AnswerNet) -> None:
    """Take over what another network has learnt. Answers that only this one gives begin as the rarest of the other's,
    kinds of places that only this one reads as they are."""
    ours, theirs = network.config, other.config
    unlike = [name for name in _SHAPE if getattr(ours, name) != getattr(theirs, name)]
    if unlike or ours.region_size - ours.kinds != theirs.region_size - theirs.kinds or ours.kinds < theirs.kinds:
        differs = unlike[0] if unlike else "its places"
        raise InvalidValue("start", f"is a network of another shape: {differs}", "begin without one")
    if network.answers is None or other.answers is None:
        raise InvalidValue("start", "does not know its answers")
    mine, learnt = network.state_dict(), other.state_dict()
    alike = {name: value for name, value in learnt.items() if not name.startswith(("answer.", "second."))}
    if network.places is not None:
        size, kinds, width = network.places.size, theirs.kinds, ours.width
        by_kind = mine["places.by_kind.weight"].view(width, ours.kinds, size).clone()
        by_kind[:, :kinds] = alike["places.by_kind.weight"].view(width, kinds, size)
        where = mine["places.where.weight"].clone()
        where[:, : BOX_NUMBERS + kinds] = alike["places.where.weight"]
        alike |= {"places.by_kind.weight": by_kind.flatten(1), "places.where.weight": where}
    weight, bias = 0.1 * mine["answer.weight"], torch.full_like(mine["answer.bias"], float(learnt["answer.bias"].min()))
    known = {text: number for number, text in enumerate(other.answers.texts)}
    for number, text in enumerate(network.answers.texts):
        if text in known:
            weight[number] = learnt["answer.weight"][known[text]]
            bias[number] = learnt["answer.bias"][known[text]]
    network.load_state_dict(mine | alike | {"answer.weight": weight, "answer.bias": bias})
