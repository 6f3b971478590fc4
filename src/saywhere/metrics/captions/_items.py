"""Captions to be scored: checked once, split into words once, and then shared by all metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypedDict, TypeVar

from saywhere.core.errors import InvalidValue
from saywhere.metrics.captions._ngrams import Runs, SentenceIds, blank_separated, ngram_runs, spaced_sentences
from saywhere.metrics.captions._tokenize import ptb_words

Id = TypeVar("Id", bound=int | str)
Tally = TypeVar("Tally")


class ScoreTable(TypedDict, Generic[Id]):
    """What every caption metric returns: scores of the whole set and of each item, by the score's name."""

    corpus: dict[str, float]
    per_item: dict[Id, dict[str, float]]


@dataclass(frozen=True, eq=False)
class CaptionSet(Generic[Id]):
    """Captions in words joined by single spaces: for each id one candidate and at least one reference."""

    ids: Sequence[Id]
    candidates: list[str]
    references: list[list[str]]

    @cached_property
    def spaced(self) -> SentenceIds:
        """The words as single spaces separate them."""
        return spaced_sentences(self.candidates, self.references)

    @cached_property
    def sentences(self) -> SentenceIds:
        """The words as any white space separates them, which differs for the no-break space inside a word."""
        return blank_separated(self.spaced)

    @cached_property
    def ngrams(self) -> list[Runs]:
        """The n-grams of `sentences`, counted once for all metrics that need them."""
        return ngram_runs(self.sentences)


def caption_set(
    candidates: Mapping[Id, str], references: Mapping[Id, Sequence[str]], *, tokenized: bool
) -> CaptionSet[Id]:
    """Check the captions and split them into words.

    candidates: one caption for each id. An empty one is allowed and scores 0.
    references: at least one caption for each of the same ids.
    tokenized: the captions are already words joined by spaces, and are taken as they are.
    """
    _check_ids(candidates, references)
    for item, candidate in candidates.items():
        _check_text(f"candidate of {item!r}", candidate)
    for item in candidates:
        _check_references(item, references[item])
    written: dict[str, str] = {}  # captions repeat, and splitting them is the slow part

    def words(text: str) -> str:
        if text not in written:
            written[text] = " ".join(ptb_words(text))
        return written[text]

    split = str if tokenized else words
    return CaptionSet(
        list(candidates),
        [split(candidate) for candidate in candidates.values()],
        [[split(reference) for reference in references[item]] for item in candidates],
    )


def joined(parts: Sequence[CaptionSet[Id]]) -> CaptionSet[Id]:
    """Several sets as one."""
    if len(parts) == 1:
        return parts[0]
    return CaptionSet(
        [item for part in parts for item in part.ids],
        [candidate for part in parts for candidate in part.candidates],
        [references for part in parts for references in part.references],
    )


class Accumulator(Generic[Tally]):
    """update, compute, reset around the two halves of a metric: what is kept of a batch, and the scores of all."""

    higher_is_better = True

    def __init__(
        self,
        tally: Callable[[CaptionSet[int | str]], Tally],
        finish: Callable[[Sequence[Tally]], ScoreTable[int | str]],
    ) -> None:
        self._tally, self._finish = tally, finish
        self._tallies: list[Tally] = []
        self._seen: set[int | str] = set()

    def update(
        self, candidates: Mapping[Id, str], references: Mapping[Id, Sequence[str]], *, tokenized: bool = False
    ) -> None:
        """Add captions. An id may come only once until `reset`."""
        if again := self._seen.intersection(candidates):
            raise InvalidValue("ids of captions", f"already scored: {_some(again)}", "call reset() to start again")
        captions = caption_set(candidates, references, tokenized=tokenized)
        self._tallies.append(self._tally(CaptionSet[int | str](captions.ids, captions.candidates, captions.references)))
        self._seen.update(candidates)

    def compute(self) -> ScoreTable[int | str]:
        """The scores of everything added so far."""
        if not self._tallies:
            raise InvalidValue("captions", "none were added", "call update() before compute()")
        return self._finish(self._tallies)

    def reset(self) -> None:
        """Forget everything."""
        self._tallies, self._seen = [], set()


def table(
    names: Sequence[str], corpus: Iterable[float], ids: Iterable[Id], rows: Iterable[Iterable[float]]
) -> ScoreTable[Id]:
    """A score table from columns `names`, the scores of the corpus, and one row of scores for each id."""
    return {
        "corpus": dict(zip(names, corpus, strict=True)),
        "per_item": {item: dict(zip(names, row, strict=True)) for item, row in zip(ids, rows, strict=True)},
    }


def _check_ids(candidates: Mapping[Id, str], references: Mapping[Id, Sequence[str]]) -> None:
    for what, given in (("candidates", candidates), ("references", references)):
        if not isinstance(given, Mapping):
            raise InvalidValue(what, f"expected a mapping from id to captions, got {type(given).__name__}")
    if not candidates and not references:
        raise InvalidValue("candidates", "there are none, so there is nothing to score")
    if odd := [item for item in candidates if not isinstance(item, int | str)]:
        raise InvalidValue("ids of captions", f"must be int or str, got {type(odd[0]).__name__}")
    if missing := candidates.keys() - references.keys():
        raise InvalidValue("references", f"none for {_some(missing)}", "every candidate needs references")
    if missing := references.keys() - candidates.keys():
        raise InvalidValue(
            "candidates", f"none for {_some(missing)}", "an empty string is a candidate; or leave out the references"
        )


def _check_references(item: int | str, given: Sequence[str]) -> None:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InvalidValue(f"references of {item!r}", f"expected a list of captions, got {type(given).__name__}")
    if not given:
        raise InvalidValue(f"references of {item!r}", "the list is empty", "at least one reference is needed")
    for reference in given:
        _check_text(f"reference of {item!r}", reference)


def _check_text(what: str, text: str) -> None:
    if not isinstance(text, str):
        raise InvalidValue(what, f"expected text, got {type(text).__name__}")


def _some(ids: Iterable[int | str]) -> str:
    """The first ids by name, and how many more there are."""
    named = sorted(map(repr, ids))
    return ", ".join(named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "")
