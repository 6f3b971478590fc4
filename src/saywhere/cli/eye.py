"""`saywhere build eye|with-eye|matching|text-writer|model`: what the eye learns from, what is built on it, and all."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from saywhere.cli.console import err, out, stages

if TYPE_CHECKING:
    from saywhere.vision.eye import EyeNet
    from saywhere.vision.runtime import Runtime

_SHOWN = 20


def eye(
    store: Annotated[Path, typer.Argument(help="A store that `saywhere build coco` made.", show_default=False)],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write the features to.")] = Path("data/eye"),
    limit: Annotated[
        int | None, typer.Option(min=1, help="Use only this many photos, those with most labels first.")
    ] = None,
    runtime: Annotated[
        str, typer.Option(help="What runs the network: openvino or torch; the first installed by default.")
    ] = "",
    precision: Annotated[
        str, typer.Option(help="Of arithmetic: f32, or bf16, twice as fast where the processor has it.")
    ] = "f32",
    tuned: Annotated[
        Path | None, typer.Option("--eye", help="Folder of a trained eye whose trunk was tuned; look with that.")
    ] = None,
    labels_only: Annotated[
        bool, typer.Option("--labels-only", help="Look at nothing: labels alone, for an eye that learns from pixels.")
    ] = False,
) -> None:
    """Look at every photo of a COCO store once, with the trunk of the eye, for `saywhere train recipes/eye.toml`; and
    with the detector and the second look, for answers and for what tells photos apart.

    A thousand photos take 180 MB. After an interruption the same command goes on.
    """
    if labels_only and tuned is not None:
        raise typer.BadParameter("looks at photos, --labels-only at none", param_hint="--eye")
    import torch

    from saywhere.build.eye_auxiliary import look_again
    from saywhere.build.eye_features import build_eye_features
    from saywhere.build.eye_things import find_things
    from saywhere.language.embed import open_text_encoder
    from saywhere.models.eye.encoder import EyeLearner
    from saywhere.store import Store
    from saywhere.vision.auxiliary import open_auxiliary
    from saywhere.vision.detector import open_detector
    from saywhere.vision.eye import EyeConfig, open_trunk

    photos, config = Store(store), EyeConfig()
    learnt = None if tuned is None else EyeLearner.from_pretrained(tuned).eye
    trunk, about = (None, {}) if labels_only else open_trunk(config, runtime, precision, learnt)
    half = torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16")
    with half, stages() as progress:
        made = build_eye_features(photos, output, trunk, about, open_text_encoder(), config, progress, limit)
        if not labels_only:
            find_things(photos, output, open_detector(), progress)
            look_again(photos, output, open_auxiliary(runtime, precision), progress)
    for key in made.unreadable[:_SHOWN]:
        err.print(f"left out {key}: its bytes are no picture", markup=False, style="yellow")
    out.print(f"{output}: {made.rows:,} photos, {len(made.unreadable):,} left out", markup=False)
    if made.unreadable:
        raise typer.Exit(1)


def with_eye(
    eye: Annotated[Path, typer.Argument(help="Folder of a trained eye (`saywhere export`).", show_default=False)],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder of the new model.")],
    writer: Annotated[
        list[str] | None, typer.Option(help="A writer as NAME=FOLDER; the first is the default of the new model.")
    ] = None,
    base: Annotated[str, typer.Option(help="The model whose memory and other writers are kept.")] = "saywhere-base",
) -> None:
    """Put a trained eye, and writers that learnt with it, into a copy of a model."""
    from saywhere import loading
    from saywhere.build.with_eye import build_with_eye

    parts = [one.partition("=") for one in writer or ()]
    if wrong := [name for name, sign, folder in parts if not (name and sign and folder)]:
        raise typer.BadParameter(f"{wrong[0]!r} is not NAME=FOLDER", param_hint="--writer")
    build_with_eye(loading.find(base).folder, eye, {name: Path(folder) for name, _, folder in parts}, output)
    out.print(f"{output}: try `saywhere caption PHOTO --model {output}`", markup=False)


def matching(
    features: Annotated[Path, typer.Argument(help="A folder that `saywhere build eye` wrote.", show_default=False)],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to; the part is in its matching/.")],
    model: Annotated[str, typer.Option(help="The model whose eye sees: a name or a folder.")] = "saywhere-base",
    steps: Annotated[int, typer.Option(min=1, help="Training steps, each of 256 photos.")] = 2000,
    query_layers: Annotated[
        int, typer.Option(min=0, max=5, help="Layers of the text encoder that learn to read texts beside it.")
    ] = 0,
    statements: Annotated[
        bool,
        typer.Option("--statements", help="Learn from photos without captions, too: by what questions say of them."),
    ] = False,
    start: Annotated[Path | None, typer.Option(help="Folder of such a part to begin with.")] = None,
    half: Annotated[bool, typer.Option("--bf16", help="Compute in bf16, where the processor has it.")] = False,
    seed: Annotated[int, typer.Option(help="Random seed of the training.")] = 0,
    install: Annotated[
        bool, typer.Option("--install", help="Put the part into the model's folder, and name it in its seer.json.")
    ] = False,
) -> None:
    """Teach a model to tell photos apart, so that a sentence finds its photo among others.

    After an interruption the same command goes on.
    """
    from saywhere import loading
    from saywhere.build.matching import MatchingScale, build_matching, install_matching
    from saywhere.models.patchioner.seer_config import EYE

    folder = loading.find(model).folder
    scale = MatchingScale(steps, query_layers=query_layers, statements=statements, start=start, bf16=half, seed=seed)
    with stages() as progress:
        part = build_matching(features, folder / EYE, output, scale, progress)
    if install:
        install_matching(part, folder)
    out.print(f"{part}: what tells photos apart" + (f", now a part of {folder}" if install else ""), markup=False)


def text_writer(
    features: Annotated[Path, typer.Argument(help="A folder that `saywhere build eye` wrote.", show_default=False)],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to; the writer is in its decoder/.")],
    model: Annotated[str, typer.Option(help="The model with eye, memory and the text-only writer.")] = "saywhere-base",
    steps: Annotated[int, typer.Option(min=1, help="Training steps by likelihood, each of 128 texts.")] = 2500,
    reward_steps: Annotated[int, typer.Option(min=1, help="Training steps by reward, each of 32 texts.")] = 1500,
    half: Annotated[bool, typer.Option("--bf16", help="Compute in bf16, where the processor has it.")] = False,
    seed: Annotated[int, typer.Option(help="Random seed of the trainings.")] = 0,
    install: Annotated[
        bool, typer.Option("--install", help="Put the writer into the model's folder, in place of the one there.")
    ] = False,
) -> None:
    """Tune a model's text-only writer to its eye: on captions alone, moved to where the eye may see their photos.

    After an interruption the same command goes on.
    """
    from saywhere import loading
    from saywhere.build.text_writer import TextWriterScale, build_text_writer, install_text_writer

    folder, scale = loading.find(model).folder, TextWriterScale(steps, reward_steps, bf16=half, seed=seed)
    with stages() as progress:
        part = build_text_writer(features, folder, output, scale, progress)
    if install:
        install_text_writer(part, folder)
    out.print(
        f"{part}: a writer that learnt from text alone" + (f", now a part of {folder}" if install else ""), markup=False
    )


def model(
    store: Annotated[Path, typer.Argument(help="A store that `saywhere build coco` made.", show_default=False)],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder of the new model.")] = Path("out/model"),
    work: Annotated[Path, typer.Option(help="Folder for intermediate results, which a second run reuses.")] = Path(
        "out/model-work"
    ),
    base: Annotated[
        str, typer.Option(help="The model whose memory is kept, and whose text-only writer is begun with.")
    ] = "saywhere-base",
    start: Annotated[
        Path | None,
        typer.Option(help="Begin with a writer and the eye in its folder, as `saywhere export` leaves them."),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Training steps of the eye and its writer.")] = 4000,
    around_steps: Annotated[int, typer.Option(min=0, help="Further steps, with surroundings such as sky.")] = 1800,
    pixel_steps: Annotated[
        int, typer.Option(min=0, help="Further steps from the photos themselves, in which the trunk learns, too.")
    ] = 2800,
    reward_steps: Annotated[int, typer.Option(min=0, help="Training steps of the writer by reward, if any.")] = 1000,
    text_steps: Annotated[
        int, typer.Option(min=0, help="Training steps of the writer that learns from text alone; 0: as in BASE.")
    ] = 2500,
    matching_steps: Annotated[
        int, typer.Option(min=0, help="Training steps of the part that tells photos apart; 0: none.")
    ] = 2000,
    answer_steps: Annotated[int, typer.Option(min=0, help="Training steps of the part that answers; 0: none.")] = 4000,
    referring_epochs: Annotated[int, typer.Option(min=0, help="Epochs of the part that finds; 0: none.")] = 8,
    naming: Annotated[bool, typer.Option(help="Whether there is a part that says which kind a box shows.")] = True,
    photos: Annotated[
        int | None, typer.Option(min=1, help="Use only this many photos, those with most labels.")
    ] = None,
    half: Annotated[bool, typer.Option("--bf16", help="Compute in bf16, where the processor has it.")] = False,
    seed: Annotated[int, typer.Option(help="Random seed of the trainings.")] = 0,
) -> None:
    """Make a model with an eye of its own from a COCO store: features, eye and writer, answers, finding.

    After an interruption the same command goes on.
    """
    import torch

    from saywhere import loading
    from saywhere.build.model import FrozenParts, ModelSettings, build_model
    from saywhere.language.embed import open_text_encoder
    from saywhere.store import Store
    from saywhere.vision.auxiliary import open_auxiliary
    from saywhere.vision.detector import open_detector
    from saywhere.vision.eye import EyeConfig, open_trunk

    config, folder = EyeConfig(), loading.find(base).folder
    settings = ModelSettings(
        start=start,
        steps=steps,
        around_steps=around_steps,
        pixel_steps=pixel_steps,
        reward_steps=reward_steps,
        text_steps=text_steps,
        matching_steps=matching_steps,
        answer_steps=answer_steps,
        referring_epochs=referring_epochs,
        naming=naming,
        photos=photos,
        precision="bf16" if half else "fp32",
        seed=seed,
    )
    precision = "bf16" if half else "f32"
    trunk, about = open_trunk(config, precision=precision)
    with torch.autocast("cpu", torch.bfloat16, enabled=half), stages() as progress:
        auxiliary = open_auxiliary(precision=precision) if matching_steps else None
        tuned = partial(_tuned_trunk, precision)
        frozen = FrozenParts(trunk, about, open_text_encoder(), open_detector(), config, auxiliary, tuned)
        left_out = build_model(Store(store), folder, output, work, frozen, settings, progress)
    for key in left_out[:_SHOWN]:
        err.print(f"left out {key}: its bytes are no picture", markup=False, style="yellow")
    out.print(f"{output}: measure it with `saywhere reproduce card --model {output}`", markup=False)
    if left_out:
        raise typer.Exit(1)


def _tuned_trunk(precision: str, eye: EyeNet) -> tuple[Runtime, dict[str, Any]]:
    from saywhere.vision.eye import open_trunk

    run, about = open_trunk(eye.config, precision=precision, tuned=eye)
    return run, dict(about)
