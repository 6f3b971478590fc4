"""The prefix decoder: one caption, a hundred at once, and decoding with kept keys and values against decoding without.

Seconds are CPU seconds of one thread, so that other work on the machine hardly counts. The network has the embedded
captioner's sizes and random weights; the end of a text is made unlikely, so that every caption has 12 words.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np
import torch

from bench.bench_mitr import Watch
from saywhere.language.vocabulary import BEGIN_ID, END_ID, Vocabulary
from saywhere.models.patchioner.decoder import DecoderConfig, GenerationConfig, PrefixDecoder

WORDS, SIZE, TEXT, MANY, BEAMS = 8000, 384, 12, 100, 5
SINGLE_MS, MANY_RATIO, CACHE_RATIO, STORED_MB = 60.0, 4.0, 3.0, 12.0
Row = tuple[str, str, str, bool]
T = TypeVar("T")


def run() -> list[Row]:
    """Rows (name, measured, asked, ok)."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        model = decoder()
        vectors = np.random.default_rng(0).standard_normal((MANY, SIZE)).astype(np.float32)
        return [*speeds(model, vectors), memory(model, vectors), stored(model)]
    finally:
        torch.set_num_threads(threads)


def decoder() -> PrefixDecoder:
    vocabulary = Vocabulary("words", ("<unk>", *(f"w{i}" for i in range(WORDS - 1))))
    model = PrefixDecoder.fresh(DecoderConfig(WORDS, SIZE, prefix=4, max_words=TEXT), vocabulary, 0).eval()
    with torch.no_grad():
        model.words.weight.mul_(5)
        model.words.weight[END_ID] = 0
    return model


def speeds(model: PrefixDecoder, vectors: np.ndarray) -> list[Row]:
    greedy, beam = GenerationConfig(), GenerationConfig("beam", beams=BEAMS)
    model.write(vectors[:1])
    singles = [timed(lambda i=i: model.write(vectors[i : i + 1], greedy)) for i in range(10)]
    single_s = min(seconds for seconds, _ in singles)
    many_s, many = min((timed(lambda: model.write(vectors, greedy)) for _ in range(3)), key=lambda one: one[0])
    beam_s = min(timed(lambda: model.write(vectors[:1], beam))[0] for _ in range(5))
    slow_s, slow = timed(lambda: [uncached(model, vector) for vector in vectors[:5]])
    same = [one.text for _, (one,) in singles] == [one.text for one in many[:10]]
    as_slow = [one.text for one in many[:5]] == slow
    ratio, cached_ratio = MANY * single_s / many_s, slow_s / 5 / (many_s / MANY)
    return [
        (
            f"decoder, greedy caption of {TEXT} words, alone",
            f"{1000 * single_s:.0f} ms",
            f"≤ {SINGLE_MS:.0f} ms",
            1000 * single_s <= SINGLE_MS,
        ),
        (f"decoder, beam {BEAMS}, alone", f"{1000 * beam_s:.0f} ms", "for information", True),
        (
            f"decoder, {MANY} captions at once against {MANY} alone",
            f"{ratio:.1f} × ({1000 * many_s:.0f} ms), {'the same' if same else 'NOT the same'} words",
            f"≥ {MANY_RATIO:.0f} ×",
            same and ratio >= MANY_RATIO,
        ),
        (
            f"decoder, {MANY} captions at once against one by one without kept keys",
            f"{cached_ratio:.1f} ×, {'the same' if as_slow else 'NOT the same'} words",
            f"≥ {CACHE_RATIO:.0f} ×",
            as_slow and cached_ratio >= CACHE_RATIO,
        ),
    ]


@torch.no_grad()
def uncached(model: PrefixDecoder, vector: np.ndarray) -> str:
    """Greedy, reading everything anew for each word."""
    read = [BEGIN_ID]
    for _ in range(TEXT):
        scores = model(torch.from_numpy(vector[None]), torch.tensor([read]))[0, -1]
        scores[[0, 1] if len(read) == 1 else [1]] = -math.inf
        read.append(int(scores.argmax()) + END_ID)
        if read[-1] == END_ID:
            break
    return model.vocabulary.text([i for i in read[1:] if i != END_ID])


def memory(model: PrefixDecoder, vectors: np.ndarray) -> Row:
    with Watch(WORDS + 1) as watch:
        model.write(vectors[:20], GenerationConfig("beam", beams=BEAMS))
    # The table of words, seen from the side, is as wide as scores are.
    kept, everything = watch.most - model.words.weight.numel(), 20 * BEAMS * TEXT * (WORDS + 1)
    measured = f"{everything / kept:.1f} × less than (batch, beam, place, vocabulary)"
    return "decoder, beam search, scores alive at once", measured, "≥ 3 × less", 3 * kept <= everything


def stored(model: PrefixDecoder) -> Row:
    with TemporaryDirectory() as folder:
        model.save_pretrained(folder, half=True)
        size_mb = sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e6
    return (
        f"decoder of {sum(p.numel() for p in model.parameters()) / 1e6:.1f} M parameters, stored in float16",
        f"{size_mb:.1f} MB",
        f"≤ {STORED_MB:.0f} MB",
        size_mb <= STORED_MB,
    )


def timed(work: Callable[[], T]) -> tuple[float, T]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def main() -> None:
    for name, measured, asked, ok in run():
        print(f"{'ok  ' if ok else 'FAIL'} {name}: {measured} (asked: {asked})")


if __name__ == "__main__":
    main()
