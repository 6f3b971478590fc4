"""The trace-captioning benchmark (Patch-ioner, Section 4.1): a sentence, and where its speaker pointed meanwhile.

Narratives are cut into sentences. Each keeps the trace between its first and its last word, less 15 % of that time at
both ends, where the hand still is at the sentence before or already on its way to the next. The sentence is rewritten
as a caption, by rule or by a language model; one about the photo itself is dropped. Whatever is dropped is counted, by
reason: sentences in = samples + dropped.

One JSON object a line:

    image_id         "212166"
    caption          "A person sitting"
    source_sentence  as it was said
    trace            [{"x", "y", "t"}]: fractions of the image's width and height, seconds
    starts           index of each stroke's first point; absent where there is one stroke
    start_s, end_s   when the sentence was said, seconds; the trace lies inside
    annotator        who said it; may be empty
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from typing import Protocol

import msgspec

from saywhere.atomic import write_atomic
from saywhere.build.caption_rules import ABOUT_THE_PHOTO, Dropped, rewrite_by_rule
from saywhere.build.llm import Chat, Message
from saywhere.core.errors import InvalidValue
from saywhere.core.narrative import Narrative
from saywhere.core.trace import Trace
from saywhere.core.words import Word
from saywhere.formats._json_lines import read_values
from saywhere.formats.localized_narratives import RawPoint
from saywhere.formats.record import InvalidRecord

TRIM = 0.15
"""Share of a sentence's time that is cut off its trace at each end."""

NO_TIMES = "its words have no times"
NO_POINTING = "nobody pointed while it was said"
ONLY_AT_ENDS = "pointed at only where the trace is trimmed"
OFF_PHOTO = "pointed at outside the photo only"
NO_ANSWER = "the model's answer is not a caption"

_AT_ONCE = 64
_LONGEST_ANSWER_WORDS = 60
_SENTENCE_END = re.compile(r"[.!?]+[\"'”’)\]]*$")
_ABBREVIATIONS = frozenset({"mr.", "mrs.", "ms.", "dr.", "st.", "vs.", "e.g.", "i.e.", "u.s.", "u.k."})


@dataclass(frozen=True, slots=True)
class Sentence:
    """A part of a narrative. words: with their times; empty where they are unknown."""

    text: str
    words: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True)
class TraceSample:
    """One sample of the benchmark. start_s, end_s: of the sentence, before its trace was trimmed."""

    image_id: str
    caption: str
    source_sentence: str
    trace: Trace
    start_s: float
    end_s: float
    annotator_id: str = ""

    def __post_init__(self) -> None:
        if not self.image_id or not self.caption.strip():
            raise InvalidValue("trace sample", "has no image or no caption")
        if not len(self.trace):
            raise InvalidValue("trace sample", "has an empty trace")
        if not self.start_s <= self.end_s:
            raise InvalidValue("trace sample", f"ends at {self.end_s:g} s, before it starts at {self.start_s:g} s")


class Rewriter(Protocol):
    """Makes captions of sentences."""

    def rewrite(self, sentences: Sequence[str]) -> list[str | Dropped]: ...


class RuleRewriter:
    """`rewrite_by_rule`: no model, the same everywhere."""

    def rewrite(self, sentences: Sequence[str]) -> list[str | Dropped]:
        return [rewrite_by_rule(sentence) for sentence in sentences]


_INSTRUCTION = (
    "You turn sentences of spoken image descriptions into short captions. Keep every object, attribute and relation "
    "that is said, and add none. Leave out the speaker, the image, hedges and where on the image something is. Answer "
    "with the caption alone. If the sentence only describes the image itself (blurry, edited, black and white, where "
    "it was taken), answer NONE."
)
_EXAMPLES = (
    ("In this image I can see a dog lying on the grass.", "A dog lying on the grass"),
    ("On the left side of the image there is a woman who is wearing a red dress.", "A woman wearing a red dress"),
    ("This is an edited image.", "NONE"),
    ("In the background we can see there are trees, and I think there is a building.", "Trees and a building"),
    ("The image is blurry.", "NONE"),
    ("There is a table, on the table there might be some plates.", "Some plates on a table"),
)


class ModelRewriter:
    """A language model behind an endpoint, shown a few examples. workers: how many questions are asked at a time."""

    def __init__(self, chat: Chat, workers: int = 4) -> None:
        self._chat, self._workers = chat, workers

    def rewrite(self, sentences: Sequence[str]) -> list[str | Dropped]:
        answers = self._chat.ask_many([_question(sentence) for sentence in sentences], self._workers)
        return [_caption_in(answer) for answer in answers]


def _question(sentence: str) -> list[Message]:
    shown = [turn for said, caption in _EXAMPLES for turn in (_turn("user", said), _turn("assistant", caption))]
    return [_turn("system", _INSTRUCTION), *shown, _turn("user", sentence)]


def _turn(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def _caption_in(answer: str) -> str | Dropped:
    caption = next((line.strip(" \"'“”*") for line in answer.splitlines() if line.strip()), "").rstrip(" .")
    if caption.upper() == "NONE":
        return Dropped(ABOUT_THE_PHOTO)
    if not caption or len(caption.split()) > _LONGEST_ANSWER_WORDS:
        return Dropped(NO_ANSWER)
    return caption


@dataclass(slots=True)
class BuildCounts:
    """What became of everything. dropped: reason → sentences."""

    narratives: int = 0
    narratives_without_sample: int = 0
    sentences: int = 0
    samples: int = 0
    images: set[str] = field(default_factory=set)
    words: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    def as_json(self) -> dict[str, object]:
        return {
            "narratives": self.narratives,
            "narratives without sample": self.narratives_without_sample,
            "sentences": self.sentences,
            "samples": self.samples,
            "images": len(self.images),
            "words in a caption": round(self.words / self.samples, 3) if self.samples else None,
            "dropped": dict(sorted(self.dropped.items())),
        }


def build_trace_benchmark(
    narratives: Iterable[Narrative],
    path: str | Path,
    rewriter: Rewriter | None = None,
    *,
    trim: float = TRIM,
) -> BuildCounts:
    """Write the benchmark of these narratives, whole or not at all."""
    counts = BuildCounts()
    encoder = msgspec.json.Encoder()
    with write_atomic(path) as file:
        for sample in trace_samples(narratives, counts, rewriter, trim=trim):
            file.write(encoder.encode(_record(sample)) + b"\n")
    return counts


def trace_samples(
    narratives: Iterable[Narrative],
    counts: BuildCounts,
    rewriter: Rewriter | None = None,
    *,
    trim: float = TRIM,
) -> Iterator[TraceSample]:
    """The samples, in the order of the narratives; `counts` grows with them. rewriter: rules if not given."""
    if not 0 <= trim < 0.5:
        raise InvalidValue("trim", f"is {trim}, not at least 0 and below a half")
    rewriter = rewriter or RuleRewriter()
    source = iter(narratives)
    while batch := list(islice(source, _AT_ONCE)):
        parts = [(narrative, sentences_of(narrative)) for narrative in batch]
        located = [[_located(sentence, narrative.trace, trim) for sentence in said] for narrative, said in parts]
        asked = [
            sentence.text
            for (_, said), traces in zip(parts, located, strict=True)
            for sentence, trace in zip(said, traces, strict=True)
            if isinstance(trace, Trace)
        ]
        rewritten = rewriter.rewrite(asked)
        if len(rewritten) != len(asked):
            raise InvalidValue("rewriter", f"gave {len(rewritten)} captions for {len(asked)} sentences")
        captions = iter(rewritten)
        for (narrative, said), traces in zip(parts, located, strict=True):
            yield from _samples(narrative, said, traces, captions, counts)


def _samples(
    narrative: Narrative,
    said: Sequence[Sentence],
    traces: Sequence[Trace | Dropped],
    captions: Iterator[str | Dropped],
    counts: BuildCounts,
) -> Iterator[TraceSample]:
    before = counts.samples
    for sentence, trace in zip(said, traces, strict=True):
        counts.sentences += 1
        caption = next(captions) if isinstance(trace, Trace) else trace
        if isinstance(caption, Dropped):
            counts.dropped[caption.reason] += 1
        elif isinstance(trace, Trace):
            counts.samples += 1
            counts.words += len(caption.split())
            counts.images.add(f"{narrative.dataset_id}/{narrative.image_id}")
            start_s, end_s = sentence.words[0].start_s, sentence.words[-1].end_s
            yield TraceSample(narrative.image_id, caption, sentence.text, trace, start_s, end_s, narrative.annotator_id)
    counts.narratives += 1
    counts.narratives_without_sample += counts.samples == before


def _located(sentence: Sentence, trace: Trace, trim: float) -> Trace | Dropped:
    if not sentence.words:
        return Dropped(NO_TIMES)
    start_s, end_s = sentence.words[0].start_s, sentence.words[-1].end_s
    if not len(trace.between(start_s, end_s)):
        return Dropped(NO_POINTING)
    cut_s = trim * (end_s - start_s)
    kept = trace.between(start_s + cut_s, end_s - cut_s)
    if not len(kept):
        return Dropped(ONLY_AT_ENDS)
    if not ((kept.xy >= 0) & (kept.xy <= 1)).all(axis=1).any():
        return Dropped(OFF_PHOTO)
    return kept


def sentences_of(narrative: Narrative) -> list[Sentence]:
    """The narrative in sentences, with the times of their words.

    Sentences are told by the caption's full stops. Where the timed words spell the caption letter by letter, they take
    its text; where they do not, they are the text. Without timed words the caption's sentences have no times.
    """
    words = narrative.words
    if not words:
        return [Sentence(" ".join(part)) for part in _split(narrative.caption.split())]
    written, said = narrative.caption.split(), [word.text for word in words]
    return _timed(written if _alphanumeric(written) == _alphanumeric(said) else said, words)


def _timed(written: Sequence[str], words: Sequence[Word]) -> list[Sentence]:
    """Sentences of the written words, each with those timed words whose middle letter lies in it."""
    parts = _split(written)
    ends = _letters([" ".join(part) for part in parts])
    middles = [(a + b) / 2 for a, b in pairwise([0, *_letters([word.text for word in words])])]
    sentences, first = [], 0
    for part, end in zip(parts, ends, strict=True):
        last = first
        # The last sentence also takes signs after the last letter.
        while last < len(words) and (middles[last] < end or end == ends[-1]):
            last += 1
        sentences.append(Sentence(" ".join(part), tuple(words[first:last])))
        first = last
    return sentences


def _split(words: Sequence[str]) -> list[list[str]]:
    """Words in sentences; a sentence ends with a full stop, "!" or "?" that is not an abbreviation's."""
    parts: list[list[str]] = [[]]
    for word in words:
        parts[-1].append(word)
        if _SENTENCE_END.search(word) and word.lower() not in _ABBREVIATIONS:
            parts.append([])
    # Signs alone, such as a stray full stop, belong to the sentence before.
    joined: list[list[str]] = []
    for part in parts:
        if joined and not any(c.isalnum() for word in part for c in word):
            joined[-1] += part
        elif part:
            joined.append(part)
    return joined


def _letters(words: Sequence[str]) -> list[int]:
    """How many letters and digits there are up to the end of each word."""
    total, ends = 0, []
    for word in words:
        total += sum(c.isalnum() for c in word)
        ends.append(total)
    return ends


def _alphanumeric(words: Sequence[str]) -> str:
    return "".join(c for word in words for c in word.casefold() if c.isalnum())


class _Record(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    image_id: str
    caption: str
    source_sentence: str
    trace: list[RawPoint]
    start_s: float
    end_s: float
    annotator: str = ""
    starts: list[int] | None = None


_DECODER = msgspec.json.Decoder(_Record)
_KEYS = 6


def read_trace_benchmark(path: str | Path) -> Iterator[TraceSample | InvalidRecord]:
    """Every sample of a file, in its order; a bad line in its place."""
    return read_values(path, _DECODER, _colons, _sample)


def _record(sample: TraceSample) -> _Record:
    return _Record(
        sample.image_id,
        sample.caption,
        sample.source_sentence,
        [RawPoint(*point) for point in sample.trace.points.tolist()],
        sample.start_s,
        sample.end_s,
        sample.annotator_id,
        list(sample.trace.starts) if len(sample.trace.starts) > 1 else None,
    )


def _sample(raw: _Record) -> TraceSample:
    trace = Trace([(p.x, p.y, p.t) for p in raw.trace], raw.starts or (0,)) if raw.trace else Trace.from_segments([])
    return TraceSample(raw.image_id, raw.caption, raw.source_sentence, trace, raw.start_s, raw.end_s, raw.annotator)


def _colons(raw: _Record) -> int:
    keys = _KEYS + bool(raw.annotator) + (raw.starts is not None)
    return 3 * len(raw.trace) + keys + f"{raw.image_id}{raw.caption}{raw.source_sentence}{raw.annotator}".count(":")
