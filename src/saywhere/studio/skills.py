"""What a loaded model can do, and for what it cannot: what is missing and how to get it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from saywhere.language.phrases import SPACY_MODEL

_MODEL_WITH = "start the Studio with a model that has this skill: saywhere studio --model NAME"


@dataclass(frozen=True, slots=True)
class Skill:
    """does: what it is, for people. packages: what must be installed for it, beside a model that has it."""

    name: str
    does: str
    packages: tuple[str, ...] = ()


SKILLS = (
    Skill("caption", "say what a region shows"),
    Skill("ground", "show where a sentence is", ("spacy", SPACY_MODEL)),
    Skill("narrate", "tell a photo and point along", ("spacy", SPACY_MODEL)),
    Skill("answer", "answer questions about a photo"),
    Skill("segment", "cut out what is pointed at"),
    Skill("scene", "say where a photo is taken"),
    Skill("chat", "talk about a photo"),
)


def skill_values(name: str, skills: Sequence[str] | None, failure: str = "") -> dict[str, dict[str, str | bool]]:
    """Every skill by its name: {has: true}, or {has: false, why, how}. skills: the model's; None if it is not there."""
    return {skill.name: _values(skill, name, skills, failure) for skill in SKILLS}


def _values(skill: Skill, model: str, skills: Sequence[str] | None, failure: str) -> dict[str, str | bool]:
    if skills is None:
        why = f"The model {model} is not there: {failure}" if failure else f"The model {model} is still loading."
        how = "see the Studio's log, then start it again" if failure else "wait a moment"
        return {"has": False, "why": why, "how": how}
    if skill.name not in skills:
        return {"has": False, "why": f"The model {model} cannot {skill.does}.", "how": _MODEL_WITH}
    missing = [package for package in skill.packages if find_spec(package) is None]
    if missing:
        why = f"To {skill.does}, the package {missing[0]} is needed, which is not installed."
        return {"has": False, "why": why, "how": "pip install 'saywhere[language]'"}
    return {"has": True}
