"""What the captions of a photo say, as values: things with colours and numbers, who does what, and what is where."""

from __future__ import annotations

from dataclasses import dataclass

from saywhere.build.caption_words import ANIMALS, FUSED, PEOPLE

BACKGROUND = "background"


@dataclass(frozen=True, slots=True)
class CaptionThing:
    """One mention of a thing.

    name: in the singular, with what belongs to it ("tennis racket"). head: its last word, in the singular. said: the
    name as it was said, but "zebras" of "two zebra". number: None where none is said, 1 for "a". before: the words of
    the caption right before the name that describe it. place: number of the caption, and of the word in it.
    """

    name: str
    head: str
    said: str
    plural: bool
    number: int | None
    colours: tuple[str, ...]
    before: tuple[str, ...]
    place: tuple[int, int]

    @property
    def person(self) -> str:
        """The kind of person, or empty."""
        return PEOPLE.get(self.head, "")

    @property
    def kind(self) -> str:
        """The head, or the whole name where its last word means something else: a hot dog is no dog."""
        return self.name if self.name in FUSED else self.head

    @property
    def is_alive(self) -> bool:
        return bool(self.person) or self.kind in ANIMALS


@dataclass(frozen=True, slots=True)
class Act:
    """Who does what. verb: in -ing, with its preposition where the objects hang on one ("sitting on")."""

    subject: CaptionThing
    verb: str
    objects: tuple[CaptionThing, ...] = ()


@dataclass(frozen=True, slots=True)
class Located:
    """A thing that is somewhere. preposition: "on", "in", "next to", … firm: the caption leaves no doubt that it is
    this thing that is there."""

    thing: CaptionThing
    preposition: str
    ground: CaptionThing
    firm: bool = True


@dataclass(frozen=True, slots=True)
class Facts:
    """What the captions of one photo say. texts: in lower case, spelled as answers are."""

    texts: tuple[str, ...]
    things: tuple[CaptionThing, ...]
    acts: tuple[Act, ...]
    placed: tuple[Located, ...]
