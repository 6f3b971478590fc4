"""`saywhere score photo-captions`: CLIP-S and PAC-S, for those who have the weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saywhere.cli.console import counted, stages
from saywhere.cli.score import Output, Predicted, report_scores, said_of, texts_of
from saywhere.core.errors import InvalidFile

if TYPE_CHECKING:
    from saywhere.core.types import Floats32
    from saywhere.language.clip_text import ClipText

_AT_ONCE = 16


def photo_captions(
    predicted: Predicted,
    photos: Annotated[Path, typer.Option(help="Folder with the photos, named by the captions' image ids.")],
    clip: Annotated[
        str, typer.Option(help="A CLIP as transformers saves it: a folder, or its name on the hub.", show_default=False)
    ],
    references: Annotated[
        Path | None, typer.Option(help="What people said, in any format with captions, for RefCLIP-S or RefPAC-S.")
    ] = None,
    pac: Annotated[
        bool, typer.Option("--pac", help="The weights are PAC-S's; a cosine counts twice, not 2.5 times.")
    ] = False,
    output: Output = None,
) -> None:
    """CLIP-S of captions, or PAC-S: how near they are to their photos, and to references if there are any."""
    from saywhere.core.errors import require
    from saywhere.metrics.photo_captions import CLIP_WEIGHT, PAC_WEIGHT, photo_caption_scores

    said = said_of(predicted)
    files = _photos(predicted, list(said), photos)
    true = None if references is None else _references(references, list(said))
    require("torch", needed_for="CLIP-S", extra="models")
    from saywhere.language.clip_text import open_clip_text

    text = open_clip_text(clip)
    seen = _seen(clip, files)
    told = _embedded(text, list(said.values()))
    near = None if true is None else [_embedded(text, some) for some in counted(true, "reading references")]
    scores = photo_caption_scores(seen, told, near, PAC_WEIGHT if pac else CLIP_WEIGHT)
    name = "PAC-S" if pac else "CLIP-S"
    found = {name: scores.by_photo}
    if scores.with_references is not None:
        found[f"Ref{name}"] = scores.with_references
    per_item = {key: {measure: float(v[i]) for measure, v in found.items()} for i, key in enumerate(said)}
    summary = {"captions": len(said), **{measure: float(values.mean()) for measure, values in found.items()}}
    given = [predicted, *([] if references is None else [references])]
    report_scores(summary, output, given, per_item=per_item)


def _references(path: Path, ids: list[str]) -> list[list[str]]:
    true = texts_of(path)
    missing = [one for one in ids if not true.get(one)]
    if missing:
        raise InvalidFile(path, f"holds no caption of {len(missing)} images, such as {missing[0]}")
    return [true[one] for one in ids]


def _photos(predicted: Path, ids: list[str], folder: Path) -> list[Path]:
    from saywhere.formats.files import find_photo

    found = {one: find_photo(folder, one) for one in ids}
    missing = [one for one, path in found.items() if path is None]
    if missing:
        raise InvalidFile(
            predicted, f"tells of {len(missing)} images that {folder} has no photo of, such as {missing[0]}"
        )
    return [path for path in found.values() if path is not None]


def _seen(clip: str, files: list[Path]) -> list[Floats32]:
    """The vector of each photo, its middle square, as both metrics look."""
    from saywhere.vision.hub import open_hub_encoder

    encoder = open_hub_encoder(f"clip:{clip}", fit="centre_crop")
    seen: list[Floats32] = []
    with stages() as progress:
        for first in range(0, len(files), _AT_ONCE):
            seen += [view.whole for view in encoder.look_many(files[first : first + _AT_ONCE])]
            progress("looking at photos", len(seen), len(files))
    return seen


def _embedded(text: ClipText, texts: list[str]) -> Floats32:
    from saywhere.metrics.photo_captions import PREFIX

    return text.embed([PREFIX + one for one in texts])
