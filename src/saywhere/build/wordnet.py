"""The nouns of WordNet 3.0, out of its own files (`data.noun`, `index.noun`, `noun.exc`; see wndb(5)).

The files are not part of this package. Debian has them as `wordnet-base`, in /usr/share/wordnet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from saywhere.core.errors import InvalidFile, UnknownName
from saywhere.formats.files import read_bytes

_HYPONYM = "~"
# WordNet's own rules of detachment for nouns (morphy(7)), the longer endings first.
_ENDINGS = (("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ies", "y"))


class WordNetNouns:
    """Senses, kinds and base forms. Lemmas are in lower case with spaces; a synset is known by its offset."""

    def __init__(self, folder: Path) -> None:
        self._hyponyms = dict(_hyponyms(folder / "data.noun"))
        self._senses = dict(_senses(folder / "index.noun"))
        self._odd = dict(_exceptions(folder / "noun.exc"))

    def synset(self, name: str) -> str:
        """The offset of "dog.n.01": the first noun sense of "dog"."""
        lemma, _, number = name.replace("_", " ").rpartition(".n.")
        senses = self._senses.get(lemma, ())
        if not number.isdigit() or not 1 <= int(number) <= len(senses):
            raise UnknownName("synset", name, (f"{lemma}.n.{i:02}" for i in range(1, len(senses) + 1)))
        return senses[int(number) - 1]

    def senses(self, lemma: str) -> tuple[str, ...]:
        """Offsets of the lemma's senses, the most frequent first; none if it is no noun."""
        return self._senses.get(lemma, ())

    def kinds(self, synset: str) -> frozenset[str]:
        """Offsets of the synset and all its hyponyms, however deep; instances (such as persons by name) are none."""
        found, open_ends = {synset}, [synset]
        while open_ends:
            for below in self._hyponyms[open_ends.pop()]:
                if below not in found:
                    found.add(below)
                    open_ends.append(below)
        return frozenset(found)

    def bases(self, word: str) -> tuple[str, ...]:
        """The nouns whose form the word can be, itself first: "glasses" → ("glasses", "glass")."""
        before, _, last = word.rpartition(" ")
        forms = [word, *self._odd.get(word, ())]
        endings = [(old, new) for old, new in _ENDINGS if last.endswith(old)]
        if not endings and last.endswith("s") and not last.endswith("ss"):
            endings = [("s", "")]
        stems = [last.removesuffix(old) + new for old, new in endings]
        stems += [last[:-1]] if last.endswith("es") and len(last) > 3 else []
        forms += [f"{before} {stem}".strip() for stem in (*stems, *self._odd.get(last, ()))]
        return tuple(dict.fromkeys(form for form in forms if form in self._senses))


def _lines(path: Path) -> Iterator[list[str]]:
    for line in read_bytes(path).decode("ascii", "replace").splitlines():
        # The licence stands above the data, indented.
        if line and not line.startswith("  "):
            yield line.split(" | ")[0].split()


def _hyponyms(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Offset of each synset with those of its hyponyms."""
    for cells in _lines(path):
        try:
            # offset, file, type, number of lemmas, (lemma, id) …, number of links, (symbol, offset, part, ends) …
            links = 4 + 2 * int(cells[3], 16)
            ends = [links + 1 + 4 * i for i in range(int(cells[links]))]
            below = tuple(cells[at + 1] for at in ends if (cells[at], cells[at + 2]) == (_HYPONYM, "n"))
        except (IndexError, ValueError) as error:
            raise InvalidFile(path, f"is not WordNet's nouns: {' '.join(cells)[:60]!r}") from error
        yield cells[0], below


def _senses(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    for cells in _lines(path):
        if len(cells) < 3 or not cells[2].isdigit():
            raise InvalidFile(path, f"is not WordNet's index of nouns: {' '.join(cells)[:60]!r}")
        yield _spaced(cells[0]), tuple(cells[-int(cells[2]) :])


def _exceptions(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    for form, *bases in _lines(path):
        yield _spaced(form), tuple(map(_spaced, bases))


def _spaced(lemma: str) -> str:
    return lemma.replace("_", " ").lower()


def all_kinds(nouns: WordNetNouns, names: Iterable[str]) -> frozenset[str]:
    """Offsets of these synsets ("dog.n.01") and of all their hyponyms."""
    return frozenset().union(*(nouns.kinds(nouns.synset(name)) for name in names))
