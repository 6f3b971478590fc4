"""What a loaded model can do, and for what it cannot: what is missing and how to get it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from saywhere.assets import MOBILE_SAM
from saywhere.language.phrases import SPACY_MODEL
from saywhere.models.face import SKILLS
from saywhere.models.registry import BASE, with_skill

PACKAGES = {"ground": ("spacy", SPACY_MODEL), "narrate": ("spacy", SPACY_MODEL)}
"""What must be installed for a skill, beside a model that has it."""
SHOWN = ("caption", "ground", "narrate", "answer", "segment", "scene", "chat")
"""What the page has a place for."""


def skill_values(name: str, skills: Sequence[str] | None, failure: str = "") -> dict[str, dict[str, str | bool]]:
    """Every skill by its name: {has: true}, or {has: false, why, how}. skills: the model's; None if it is not there."""
    return {skill: _values(skill, name, skills, failure) for skill in SHOWN}


def _values(skill: str, model: str, skills: Sequence[str] | None, failure: str) -> dict[str, str | bool]:
    if skills is None:
        why = f"The model {model} is not there: {failure}" if failure else f"The model {model} is still loading."
        how = "see the Studio's log, then start it again" if failure else "wait a moment"
        return {"has": False, "why": why, "how": how}
    if skill == "segment" and skill not in skills and model.partition(":")[0] == BASE:
        why = f"To {SKILLS[skill]}, the model {model} needs weights by others, the asset {MOBILE_SAM}."
        return {"has": False, "why": why, "how": f"saywhere assets fetch {MOBILE_SAM}, then start the Studio again"}
    if skill not in skills:
        return {"has": False, "why": f"The model {model} cannot {SKILLS[skill]}.", "how": _other_model(skill)}
    missing = [package for package in PACKAGES.get(skill, ()) if find_spec(package) is None]
    if missing:
        why = f"To {SKILLS[skill]}, the package {missing[0]} is needed, which is not installed."
        return {"has": False, "why": why, "how": "pip install 'saywhere[language]'"}
    return {"has": True}


def _other_model(skill: str) -> str:
    known = ", ".join(with_skill(skill))
    if not known:
        return "no model of this version can"
    return f"start the Studio with a model that has this skill: saywhere studio --model NAME. It can be {known}"
