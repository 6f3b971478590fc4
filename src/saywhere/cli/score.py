"""`saywhere score`: metrics on files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from saywhere.cli.batch_options import EngineName, RayAddress, Workers, chosen_engine
from saywhere.cli.console import counted, out, plain_table, stages
from saywhere.cli.data import format_of, read_good, read_narratives
from saywhere.cli.provenance import provenance
from saywhere.core.errors import InvalidFile, InvalidValue
from saywhere.core.narrative import Narrative

app = typer.Typer(help="Score predictions against the truth.", no_args_is_help=True, rich_markup_mode=None)

Predicted = Annotated[Path, typer.Argument(help="File with the predictions.", show_default=False)]
Truth = Annotated[Path, typer.Argument(help="File with the truth.", show_default=False)]
Output = Annotated[
    Path | None, typer.Option("--out", "-o", help="Also write the scores, with version and inputs, as JSON.")
]


@app.command()
def captions(
    predicted: Predicted,
    references: Truth,
    metrics: Annotated[
        str, typer.Option(help="Metrics, separated by commas: bleu, rouge-l, cider, meteor, spice, scene-graph-f.")
    ] = "bleu,rouge-l,cider",
    output: Output = None,
) -> None:
    """BLEU, ROUGE-L, CIDEr and more, for each image and in all.

    Both files may be COCO captions, COCO results, Localized Narratives or any other format with captions, or a JSON
    object of id → text (predictions) and id → list of texts (references).
    """
    from saywhere.metrics import caption_scores

    said = said_of(predicted)
    names = tuple(name.strip().replace("-", "_") for name in metrics.split(",") if name.strip())
    scores = caption_scores(said, texts_of(references), names)
    report_scores(
        {"captions": len(said), **scores["corpus"]}, output, [predicted, references], per_item=scores["per_item"]
    )


@app.command()
def traces(
    predicted: Predicted,
    truth: Truth,
    k: Annotated[int, typer.Option("-k", min=0, help="By how many places the order may differ.")] = 0,
    protocol: Annotated[
        str, typer.Option(help="Definition to use: paper, or released (the authors' evaluation).")
    ] = "paper",
    output: Output = None,
    engine: EngineName = "local",
    workers: Workers = 0,
    address: RayAddress = "",
) -> None:
    """LBM between the word boxes of two files of narratives; smaller is better.

    A narrative is compared with the one of the same data set, image and annotator. Unlocated words are left out; with
    --protocol released from the truth alone, where a predicted word without a place counts as the whole image.
    """
    from saywhere.cli.mapped_lbm import lbm_mapped

    guesses, truths = _by_id(predicted), _by_id(truth)
    _same_keys(guesses, truths, predicted, truth)
    pairs = {key: (_predicted_boxes(guesses[key], protocol), truths[key].word_boxes().located_xyxy) for key in truths}
    keys = [key for key, (guess, true) in pairs.items() if len(guess) and len(true)]
    if not keys:
        raise InvalidFile(truth, "no narrative has located words in both files")
    with stages() as progress:
        where = chosen_engine(engine, workers, address)
        distances = lbm_mapped([pairs[key] for key in keys], k, protocol, where, progress)
    summary = {
        f"LBM (k={k}, {protocol})": float(distances.mean()),
        "narratives": len(keys),
        "without located words in one file": len(truths) - len(keys),
    }
    per_item = {"/".join(map(str, key)): {"LBM": float(d)} for key, d in zip(keys, distances, strict=True)}
    report_scores(summary, output, [predicted, truth], per_item=per_item)


@app.command()
def answers(
    predicted: Annotated[Path, typer.Argument(help="VQA results: [{question_id, answer}, …].", show_default=False)],
    questions: Annotated[Path, typer.Argument(help="VQA v2 or VQA-CP questions.", show_default=False)],
    annotations: Annotated[
        Path, typer.Argument(help="VQA annotations with ten answers for each question.", show_default=False)
    ],
    output: Output = None,
) -> None:
    """VQA accuracy, in all and by answer type."""
    from saywhere.formats import vqa
    from saywhere.formats.record import InvalidRecord
    from saywhere.metrics import VQAAccuracy

    given = _answers(predicted)
    accuracy = VQAAccuracy()
    missing = []
    for question in counted(vqa.read(questions, annotations), f"reading {questions.name}"):
        if isinstance(question, InvalidRecord):
            raise InvalidFile(questions, f"a question cannot be read: {question}")
        if str(question.question_id) not in given:
            missing.append(str(question.question_id))
            continue
        said = given[str(question.question_id)]
        accuracy.update([said], [question.answers], [question.answer_type], [question.question_type])
    if missing:
        raise InvalidFile(predicted, f"answers none of {len(missing):,} questions, such as {missing[0]}")
    scores = accuracy.compute()
    report_scores({"accuracy": scores.overall, **scores.by_answer_type}, output, [predicted, questions, annotations])


@app.command("yes-no")
def yes_no(
    predicted: Annotated[Path, typer.Argument(help="Results: [{question_id, answer}, …].", show_default=False)],
    questions: Annotated[Path, typer.Argument(help="POPE questions with their labels.", show_default=False)],
    output: Output = None,
) -> None:
    """Accuracy, precision, recall, F1 and the share of yes on POPE's questions."""
    from saywhere.metrics import yes_no_scores

    given = _answers(predicted)
    asked = list(read_good(questions, "pope"))
    missing = [q.question_id for q in asked if str(q.question_id) not in given]
    if missing:
        raise InvalidFile(predicted, f"answers none of {len(missing):,} questions, such as {missing[0]}")
    scores = yes_no_scores([given[str(q.question_id)] for q in asked], [q.label for q in asked])
    summary = {name: getattr(scores, name) for name in ("accuracy", "precision", "recall", "f1", "yes_rate", "items")}
    report_scores(summary, output, [predicted, questions])


@app.command()
def boxes(
    predicted: Annotated[Path, typer.Argument(help="JSON object: id → [x1, y1, x2, y2].", show_default=False)],
    truth: Annotated[Path, typer.Argument(help="The true boxes in the same form and unit.", show_default=False)],
    threshold: Annotated[float, typer.Option(min=0, max=1, help="IoU from which a box counts as correct.")] = 0.5,
    output: Output = None,
) -> None:
    """Share of correct boxes and mean IoU, for referring expressions."""
    import numpy as np

    from saywhere.metrics import paired_box_iou, precision_at

    guesses, truths = (json_object(path, list[float]) for path in (predicted, truth))
    _same_keys(guesses, truths, predicted, truth)
    ious = paired_box_iou(np.array([guesses[key] for key in truths]), np.array(list(truths.values())))
    summary = {f"P@{threshold:g}": precision_at(ious, threshold), "mean IoU": float(ious.mean()), "boxes": len(ious)}
    per_item = {key: {"IoU": float(iou)} for key, iou in zip(truths, ious, strict=True)}
    report_scores(summary, output, [predicted, truth], per_item=per_item)


@app.command()
def saliency(
    maps: Annotated[Path, typer.Argument(help="Folder of grey maps, one PNG per image.", show_default=False)],
    gaze: Annotated[Path, typer.Argument(help="OSIE or SALICON fixations.", show_default=False)],
    output: Output = None,
) -> None:
    """NSS, AUC-Judd, CC, KL and SIM of saliency maps against where people looked."""
    import numpy as np

    from saywhere.core.attention import AttentionMap
    from saywhere.formats.files import find_photo
    from saywhere.metrics import CC, KL, NSS, SIM, AUCJudd

    places: dict[str, list[Any]] = defaultdict(list)
    for record in read_good(gaze, None):
        places[Path(str(record.image_id)).stem].append(record.points_xy)
    fixated, compared = (NSS(), AUCJudd()), (CC(), KL(), SIM())
    scored = 0
    for image_id, points in counted(places.items(), "scoring", len(places)):
        path = find_photo(maps, image_id)
        if path is None:
            continue
        values = _grey(path)
        seen = np.concatenate(points)
        seen = seen[((seen >= 0) & (seen <= 1)).all(axis=1)]
        for metric in fixated:
            metric.update(values, seen)
        human = AttentionMap.from_fixations(seen, shape=values.shape).values
        for other in compared:
            other.update(values, human)
        scored += 1
    if not scored:
        raise InvalidFile(maps, f"holds no map for any of the {len(places):,} images in {gaze.name}")
    summary = {type(metric).__name__: metric.compute() for metric in (*fixated, *compared)}
    report_scores({"images": scored, "images without a map": len(places) - scored, **summary}, output, [maps, gaze])


def _grey(path: Path) -> Any:
    import numpy as np
    from PIL import Image

    try:
        with Image.open(path) as image:
            return np.asarray(image.convert("F"), dtype=np.float64)
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise InvalidFile(path, f"cannot be read as an image: {error}") from error


def said_of(path: Path) -> dict[str, str]:
    """Image id → the one caption of it, from any format that holds them."""
    said = texts_of(path)
    several = next((key for key, texts in said.items() if len(texts) > 1), None)
    if several is not None:
        raise InvalidFile(path, f"holds {len(said[several])} captions for image {several}; one is scored")
    return {key: texts[0] for key, texts in said.items()}


def texts_of(path: Path) -> dict[str, list[str]]:
    """Image id → captions, from any format that holds them or from a plain JSON object."""
    try:
        kind = format_of(path, None)
    except InvalidFile as unknown:
        try:
            return {
                key: [texts] if isinstance(texts, str) else texts
                for key, texts in json_object(path, str | list[str]).items()
            }
        except InvalidFile:
            raise unknown from None
    found: dict[str, list[str]] = defaultdict(list)
    for value in read_good(path, kind.name):
        caption = getattr(value, "caption", None)
        if not isinstance(caption, str):
            raise InvalidFile(path, f"holds {kind.holds} ({kind.title}), not captions")
        found[str(value.image_id)].append(caption)
    return dict(found)


def _predicted_boxes(narrative: Narrative, protocol: str) -> Any:
    """As a protocol compares them: the authors' program keeps unlocated words of a prediction, as the whole image."""
    boxes = narrative.word_boxes()
    return boxes.encode()[:, :4] if protocol == "released" else boxes.located_xyxy


def _by_id(path: Path) -> dict[tuple[str, int], Narrative]:
    """Narratives by id; the second of one id gets number 1, and so on."""
    found: dict[tuple[str, int], Narrative] = {}
    times: dict[str, int] = defaultdict(int)
    for narrative in read_narratives(path, None):
        found[narrative.id, times[narrative.id]] = narrative
        times[narrative.id] += 1
    return found


def _answers(path: Path) -> dict[str, str]:
    import msgspec

    from saywhere.formats.files import read_bytes

    class PredictedAnswer(msgspec.Struct):
        question_id: int | str
        answer: str

    try:
        given = msgspec.json.decode(read_bytes(path), type=list[PredictedAnswer])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidFile(path, f"is not a list of {{question_id, answer}}: {error}") from error
    return {str(a.question_id): a.answer for a in given}


def json_object(path: Path, of: Any) -> dict[str, Any]:
    """A JSON object with values of this type."""
    import msgspec

    from saywhere.formats.files import read_bytes

    try:
        decoded: dict[str, Any] = msgspec.json.decode(read_bytes(path), type=dict[str, of])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidFile(path, f"is not the JSON object asked for: {error}") from error
    return decoded


def _same_keys(guesses: Mapping[Any, Any], truths: Mapping[Any, Any], predicted: Path, truth: Path) -> None:
    for these, those, path in ((truths, guesses, predicted), (guesses, truths, truth)):
        lacking = [key for key in these if key not in those]
        if lacking:
            raise InvalidFile(path, f"lacks {len(lacking):,} of the other file's items, such as {lacking[0]}")
    if not truths:
        raise InvalidValue(str(truth), "holds nothing to score")


def report_scores(
    summary: Mapping[str, float], output: Path | None, inputs: list[Path], per_item: Mapping[Any, Any] | None = None
) -> None:
    """Print scores, and write them with what they were made of."""
    table = plain_table()
    for name, value in summary.items():
        table.add_row(name, f"{value:,}" if isinstance(value, int) else f"{value:.4f}")
    out.print(table)
    if output:
        import msgspec

        from saywhere.atomic import write_atomic

        result = {"scores": dict(summary), "per_item": per_item or {}, "made_by": provenance(inputs)}
        with write_atomic(output) as file:
            file.write(msgspec.json.format(msgspec.json.encode(result, enc_hook=float)))
