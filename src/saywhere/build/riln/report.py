"""What people read about a data set: report.md, with the paper's figures beside ours, and the price of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from saywhere.atomic import write_atomic
from saywhere.build.riln.drafts import CELLS
from saywhere.build.riln.example import KINDS, LEVELS
from saywhere.build.riln.overlap import EvaluationText
from saywhere.build.riln.pipeline import RilnManifest
from saywhere.build.riln.roles import RoleSettings
from saywhere.build.riln.statistics import RilnStatistics

NOT_SAID = "–"


def write_report(
    folder: str | Path,
    manifest: RilnManifest,
    evaluation: EvaluationText,
    roles: Mapping[str, RoleSettings] | None = None,
    command: str = "",
) -> None:
    """Write report.md into the data set's folder, whole or not at all."""
    with write_atomic(Path(folder) / "report.md") as file:
        file.write(report_text(manifest, evaluation, roles, command).encode("utf-8", "backslashreplace"))


def report_text(
    manifest: RilnManifest,
    evaluation: EvaluationText,
    roles: Mapping[str, RoleSettings] | None = None,
    command: str = "",
) -> str:
    """The report as Markdown."""
    found = manifest.statistics
    parts = ["# RILN data set", f"Generator: {manifest.generator}. Seed {manifest.settings['seed']}."]
    parts += [f"```\n{command}\n```"] if command else []
    parts += [_table(("", "here", "paper (TraceVLM, Section 3.3)"), _overview(manifest, evaluation))]
    parts += ["## Questions by level and kind", _table(("level", *KINDS, "all"), _levels(found))]
    parts += ["## Rejections", _rejections(found)]
    if found.calls:
        parts += [
            "## Calls",
            _table(("role", "answers", "question tokens", "answer tokens", "price"), _calls(found, roles)),
        ]
    parts += ["![statistics](statistics.png)"]
    return "\n\n".join(parts) + "\n"


def _overview(manifest: RilnManifest, evaluation: EvaluationText) -> list[tuple[str, str, str]]:
    found = manifest.statistics
    questions, thinned = sum(found.questions.values()), found.points_before - found.points_after
    dialogue_turns = sum(int(turns) * count for turns, count in found.turns.items())
    per_image = found.dialogues / found.dialogue_images if found.dialogue_images else 0.0
    return [
        ("examples", f"{found.examples:,}", "320,000"),
        ("records read", f"{found.records:,}", NOT_SAID),
        ("narratives used", f"{found.narratives:,}", NOT_SAID),
        ("narratives whose photo is at hand (others count as 640 × 480 px)", f"{found.with_photo:,}", NOT_SAID),
        ("images", f"{len(found.images):,}", NOT_SAID),
        ("narratives of a training split", f"{found.split.get('training', 0):,}", "all"),
        ("narratives whose split has no name", f"{found.split.get('not named', 0):,}", "none"),
        ("narratives of an evaluation split (--any-split)", f"{found.split.get('evaluation', 0):,}", "none"),
        ("questions with answers", f"{questions:,}", NOT_SAID),
        ("examples with a reasoning tree", f"{found.trees:,}", NOT_SAID),
        ("dialogues", f"{found.dialogues:,}", NOT_SAID),
        ("dialogues per image", f"{per_image:.2f}", "3 to 5"),
        ("turns of a dialogue", _mean(dialogue_turns, found.dialogues), "4 to 8"),
        ("words of an example", _mean(found.words, found.examples), NOT_SAID),
        ("words of answers", f"{found.answer_words:,}", NOT_SAID),
        ("points of a trajectory, as recorded", _mean(found.points_before, found.grounded), "410 (one example)"),
        ("points of a trajectory, thinned", _mean(found.points_after, found.grounded), "37 (one example)"),
        ("points left out", _share(thinned, found.points_before), "91 % (one example)"),
        ("sentences of evaluation text", f"{evaluation.sentences:,}", NOT_SAID),
        ("5-grams shared with it, as generated", _share(found.shared, found.grams), NOT_SAID),
        ("5-grams shared with it, as kept", _share(found.kept_shared, found.kept_grams), "below 5 %"),
        ("examples reviewed by people", f"{found.decided:,}", "2,000"),
        ("decisions about a text that is not there", f"{manifest.unfit:,}", NOT_SAID),
    ]


def _levels(found: RilnStatistics) -> list[tuple[str, ...]]:
    counts = {cell: found.questions.get("/".join(cell), 0) for cell in CELLS}
    rows = {level: [counts[cell] for cell in CELLS if cell[0] == level] for level in LEVELS}
    sums = [sum(n for cell, n in counts.items() if cell[1] == kind) for kind in KINDS]
    return [(name, *(f"{n:,}" for n in (*row, sum(row)))) for name, row in {**rows, "all": sums}.items()]


def _rejections(found: RilnStatistics) -> str:
    if not found.rejections:
        return "None."
    rows = sorted(found.rejections.items(), key=lambda both: (-both[1], both[0]))
    return _table(("reason", "how many"), [(reason, f"{count:,}") for reason, count in rows])


def _calls(found: RilnStatistics, roles: Mapping[str, RoleSettings] | None) -> list[tuple[str, ...]]:
    rows = []
    for role, count in found.calls.items():
        tokens = found.prompt_tokens.get(role, 0), found.answer_tokens.get(role, 0)
        rows.append((role, f"{count:,}", *(f"{n:,}" for n in tokens), f"{price_of(found, roles, role):.4f}"))
    return [*rows, ("all", f"{sum(found.calls.values()):,}", "", "", f"{price_of(found, roles):.4f}")]


def price_of(found: RilnStatistics, roles: Mapping[str, RoleSettings] | None, only: str = "") -> float:
    """What the answers cost, of one role or all, in the currency of the roles' prices; 0 where none is given."""
    return sum(
        settings.price(found.prompt_tokens.get(role, 0), found.answer_tokens.get(role, 0))
        for role, settings in (roles or {}).items()
        if only in ("", role)
    )


def _mean(amount: int, count: int) -> str:
    return f"{amount / count:.1f}" if count else NOT_SAID


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else NOT_SAID


def _table(
    head: tuple[str, ...], rows: list[tuple[str, ...]] | list[tuple[str, str, str]] | list[tuple[str, str]]
) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
