"""MITR: decoding with kept keys and values against decoding without, and one encoding against one for each task.

Seconds are CPU seconds of one thread, so that other work on the machine hardly counts. The network has the paper's
sizes and random weights; the end of a text is made unlikely, so that all decoders write 50 words.
"""

from __future__ import annotations

import statistics
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from bench import uncached_mitr
from saywhere.models.common.batches import padding_mask
from saywhere.models.common.modes import seeded_dropout
from saywhere.models.mitr import MITR, Batch, Images, MitrConfig, ObjectiveSettings, decode
from saywhere.models.mitr.cycle import drawn_caption, swapped_in_batch
from saywhere.models.mitr.layers import shifted_boxes, shifted_words
from saywhere.models.mitr.losses import caption_loss, trace_loss
from saywhere.models.mitr.network import Memory
from saywhere.models.mitr.objective import losses
from saywhere.models.search import Hypothesis

IMAGES, REGIONS, TEXT, BEAMS, WORDS = 8, 100, 50, 5, 10_000
CAPTION_RATIO, TRACE_RATIO, JOINT_RATIO, STEP_RATIO = 15.0, 20.0, 8.0, 2.0
PARAMETERS = {1: 31_286_550, 2: 38_645_526}
Row = tuple[str, str, str, bool]
T = TypeVar("T")


def run() -> list[Row]:
    """Rows (name, measured, asked, ok)."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [*parameters(), *decoding(), *training()]
    finally:
        torch.set_num_threads(threads)


def parameters() -> list[Row]:
    rows = []
    for layers, asked in PARAMETERS.items():
        with torch.device("meta"):
            count = sum(parameter.numel() for parameter in MITR(MitrConfig(WORDS, layers=layers)).parameters())
        rows.append((f"MITR parameters, N = {layers}, V = {WORDS:,}", f"{count:,}", f"{asked:,}", count == asked))
    return rows


def decoding() -> list[Row]:
    """Cached and uncached decoders of one network, on the same images, which must write the same."""
    model = MITR.fresh(MitrConfig(WORDS), seed=0).eval()
    with torch.no_grad():
        model.say.bias[0] = -20.0
    draw = torch.Generator().manual_seed(0)
    mask = torch.ones(IMAGES, REGIONS, dtype=torch.bool)
    regions = (torch.rand(IMAGES, REGIONS, 2048, generator=draw), torch.rand(IMAGES, REGIONS, 5, generator=draw), mask)
    boxes, box_mask = torch.rand(IMAGES, TEXT, 5, generator=draw), torch.ones(IMAGES, TEXT, dtype=torch.bool)
    words, lengths = torch.randint(3, 3 + WORDS, (IMAGES, TEXT), generator=draw), torch.full((IMAGES,), TEXT)
    beam = replace(decode.BEAM, beams=BEAMS, max_words=TEXT)
    greedy = replace(beam, method="greedy")

    @torch.no_grad()
    def memory() -> Memory:
        return model.encode(*regions)

    rows = [
        compared(
            f"caption, beam {BEAMS}, {TEXT} words, batch {IMAGES}",
            lambda: ids(decode.caption(model, memory(), boxes, box_mask, beam)),
            lambda: uncached_mitr.caption(model, regions, boxes, box_mask, BEAMS, TEXT),
            CAPTION_RATIO,
        ),
        compared(
            f"trace of {TEXT} boxes, batch {IMAGES}",
            lambda: decode.trace(model, memory(), words, lengths),
            lambda: uncached_mitr.trace(model, regions, words, lengths),
            TRACE_RATIO,
        ),
        compared(
            f"joint, beam {BEAMS}, {TEXT} words, batch {IMAGES}",
            lambda: ids(decode.joint(model, memory(), beam)),
            lambda: uncached_mitr.joint(model, regions, BEAMS, TEXT),
            JOINT_RATIO,
        ),
        compared(
            f"joint, greedy, {TEXT} words, batch {IMAGES} (8 rows: reading the weights is the cost)",
            lambda: ids(decode.joint(model, memory(), greedy)),
            lambda: uncached_mitr.joint(model, regions, 1, TEXT),
            None,
        ),
    ]
    with Watch(WORDS + 1) as watch:
        decode.caption(model, memory(), boxes, box_mask, beam)
    kept, all_places = watch.most, IMAGES * BEAMS * TEXT * (WORDS + 1)
    measured = (
        f"{kept * 4 / 2**20:.1f} MiB at most, {all_places / kept:.0f} × less than (batch, beam, place, vocabulary)"
    )
    rows.append(
        ("MITR beam search, scores over the vocabulary alive at once", measured, "≥ 10 × less", kept * 10 <= all_places)
    )
    return rows


def ids(said: list[Hypothesis]) -> list[list[int]]:
    return [list(one.tokens) for one in said]


def compared(name: str, cached: Callable[[], T], uncached: Callable[[], T], asked: float | None) -> Row:
    """The best of three cached runs against one uncached run."""
    seconds, answer = zip(*(timed(cached) for _ in range(3)), strict=True)
    slow_s, slow_answer = timed(uncached)
    same = close(answer[0], slow_answer)
    ratio = slow_s / min(seconds)
    measured = (
        f"{ratio:.1f} × ({min(seconds):.2f} s against {slow_s:.1f} s), {'the same' if same else 'NOT the same'} output"
    )
    wanted = "for information" if asked is None else f"≥ {asked:.0f} × uncached"
    return f"MITR {name}", measured, wanted, same and (asked is None or ratio >= asked)


def close(a: object, b: object) -> bool:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return torch.allclose(a, b, atol=1e-5)
    return a == b


def timed(work: Callable[[], T]) -> tuple[float, T]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


class Watch(TorchDispatchMode):
    """The most numbers alive at once in tensors whose last axis is `width` long; views count for nothing."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width, self.most = width, 0
        self._alive: weakref.WeakValueDictionary[int, torch.UntypedStorage] = weakref.WeakValueDictionary()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for one in out if isinstance(out, tuple | list) else (out,):
            if isinstance(one, Tensor) and one.dim() > 1 and one.shape[-1] == self.width:
                storage = one.untyped_storage()
                self._alive[storage.data_ptr()] = storage
        self.most = max(self.most, sum(storage.nbytes() // 4 for storage in self._alive.values()))
        return out


def training() -> list[Row]:
    """A step of Task 1 + Task 2 + cycle, forwards and backwards, in the world's setting and in the paper's."""
    world = MitrConfig(250, 128, 64, 4, 256, attention_dropout=0.0, photo_px=128)
    photos = Images(photos=torch.randint(0, 256, (16, 3, 128, 128), dtype=torch.uint8))
    mask = torch.ones(8, REGIONS, dtype=torch.bool)
    regions = Images(None, torch.rand(8, REGIONS, 2048), torch.rand(8, REGIONS, 5), mask)
    return [
        stepped("photos of 128 px through the eye, d 64, V 250, batch 16, 48 words", world, photos, 48, STEP_RATIO),
        stepped("paper's sizes, 100 regions, V 10,000, batch 8, 42 words", MitrConfig(WORDS), regions, 42, None),
    ]


def stepped(name: str, config: MitrConfig, images: Images, words: int, asked: float | None) -> Row:
    model = MITR.fresh(config, seed=0).train()
    count, draw = len(images), torch.Generator().manual_seed(0)
    said = torch.randint(3, 3 + config.words, (count, words), generator=draw)
    boxes, located = torch.rand(count, words, 5, generator=draw), torch.ones(count, words, dtype=torch.bool)
    batch = Batch(images, said, boxes, located, torch.full((count,), words))
    settings = ObjectiveSettings(joint=0.0)

    def once() -> Tensor:
        return losses(model, batch, settings, torch.Generator().manual_seed(1))["loss"]

    def per_task() -> Tensor:
        return encoding_per_task(model, batch, settings, torch.Generator().manual_seed(1))

    with torch.no_grad():
        # Without dropout the two must be one and the same.
        model.eval()
        same = torch.allclose(once(), per_task(), atol=1e-5)
        model.train()
    # In turn, so that both meet the same load; the first pair warms up.
    pairs = [(backwards(once), backwards(per_task)) for _ in range(4 if asked is None else 10)][1:]
    ratio = statistics.median(slow_s / fast_s for fast_s, slow_s in pairs)
    fast_s, slow_s = (statistics.median(column) for column in zip(*pairs, strict=True))
    measured = f"{ratio:.2f} × ({fast_s:.2f} s against {slow_s:.2f} s), {'the same' if same else 'NOT the same'} loss"
    wanted = "for information" if asked is None else f"≥ {asked:.0f} × encoding per task"
    return f"MITR training step, {name}", measured, wanted, same and (asked is None or ratio >= asked)


def backwards(work: Callable[[], Tensor]) -> float:
    """Seconds that a loss takes, forwards and backwards."""
    return timed(lambda: work().backward())[0]  # type: ignore[no-untyped-call]  # torch declares no types for it


def encoding_per_task(model: MITR, batch: Batch, settings: ObjectiveSettings, generator: torch.Generator) -> Tensor:
    """The same losses, with the image encoded for each pass through the network, as the authors' program does."""
    read, rows = shifted_words(batch.words, batch.lengths)
    real = padding_mask(batch.lengths + 1, read.shape[1])
    mask = real[:, 1:]
    with seeded_dropout(generator, model):
        predicted = model.ground(model.encode_images(batch.images), batch.words, mask, shifted_boxes(batch.boxes))
        trace = trace_loss(predicted, batch.boxes, batch.located)
        logits = model.caption(model.encode_images(batch.images), read, real, batch.boxes, mask)
        caption = caption_loss(logits, rows, real)
        boxes = batch.boxes[swapped_in_batch(len(batch), generator)]
        memory = model.encode_images(batch.images)
        words = drawn_caption(model, memory, boxes, mask, settings.temperature, generator)
        back = model.ground(model.encode_images(batch.images), words, mask, shifted_boxes(boxes))
        cycle = trace_loss(back, boxes, mask)
    return settings.trace * trace + settings.caption * caption + settings.cycle * cycle


def main() -> None:
    for name, measured, asked, ok in run():
        print(f"{'ok  ' if ok else 'FAIL'} {name}: {measured} (asked: {asked})")


if __name__ == "__main__":
    main()
