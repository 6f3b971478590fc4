from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from saywhere.build.memory import add_phrases, build_memory, collect, folded, read_sentences
from saywhere.core import InvalidValue, Narrative, Trace
from saywhere.core.errors import InvalidFile
from saywhere.formats import coco_captions, localized_narratives
from saywhere.formats.coco_captions import CaptionRecord
from saywhere.formats.record import InvalidRecord
from saywhere.models.patchioner.memory import MemoryBank
from tests.engine.stages import LetterEncoder


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.txt"
    path.write_bytes(b"A dog runs.\n\na  DOG runs\n1.jpg#0\tA cat sits on a couch .\n***\nbroken \xff\nA cat\n")
    return path


def test_plain_text_is_read_line_by_line_and_bad_lines_are_named(plain: Path) -> None:
    found = list(read_sentences(plain))
    assert [item for item in found if isinstance(item, str)] == [
        "A dog runs.",
        "a DOG runs",
        "A cat sits on a couch .",
        "A cat",
    ]
    bad = [(item.line, item.reason) for item in found if isinstance(item, InvalidRecord)]
    assert [line for line, _ in bad] == [5, 6]
    assert bad[0][1] == "holds no word"
    assert "not UTF-8" in bad[1][1]


def test_gzip_captions_and_narratives_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "a.en.gz").write_bytes(gzip.compress("Ein Hund\nein Café\n".encode()))
    coco_captions.write(tmp_path / "captions.json", [CaptionRecord(1, 1, "a red bus\n"), CaptionRecord(1, 2, "a bus")])
    spoken = Narrative("7", "In this image there is a dog. It runs. ", (), Trace([]))
    localized_narratives.write(tmp_path / "spoken.jsonl", [spoken])
    assert list(read_sentences(tmp_path / "a.en.gz")) == ["Ein Hund", "ein Café"]
    assert list(read_sentences(tmp_path / "captions.json")) == ["a red bus", "a bus"]
    assert list(read_sentences(tmp_path / "spoken.jsonl")) == ["In this image there is a dog.", "It runs."]


@pytest.mark.parametrize("content", ['{"a": 1}', '[{"question_id": 1, "label": 2}]'])
def test_a_file_that_holds_something_else_is_a_clear_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(content)
    with pytest.raises(InvalidFile, match=r"in no format that saywhere knows|no sentences to remember"):
        collect([path])


def test_what_a_cut_off_file_still_gives_is_kept_and_the_cut_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress("".join(f"dog number {i * i}\n" for i in range(5000)).encode())[:-6000])
    collected = collect([path])
    assert collected.sentences[:2] == ["dog number 0", "dog number 1"]
    assert 0 < len(collected.sentences) < 5000
    assert "cut off or damaged" in collected.bad[0].reason
    path.write_bytes(path.read_bytes()[:15])
    with pytest.raises(InvalidValue, match="cut off or damaged"):
        collect([path])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("A dog runs.", "a  dog, RUNS", True),
        ("Straße", "STRASSE", True),
        ("a dog", "a dogs", False),
        ("a t-shirt", "a t shirt", True),
    ],
)
def test_case_space_and_punctuation_make_no_difference(one: str, other: str, same: bool) -> None:
    assert (folded(one) == folded(other)) is same


def test_every_line_is_kept_there_already_or_bad(plain: Path) -> None:
    collected = collect([plain, plain])
    assert collected.sentences == ["A dog runs.", "A cat sits on a couch .", "A cat"]
    assert (len(collected.sentences), collected.again, len(collected.bad)) == (3, 5, 4)
    assert collect([plain], limit=2).sentences == collected.sentences[:2]


def test_a_bank_is_built_with_its_sentences_and_where_they_came_from(plain: Path, tmp_path: Path) -> None:
    out, said = tmp_path / "new" / "bank.safetensors", set[str]()
    made = build_memory([plain], out, LetterEncoder(), progress=lambda doing, done, total: said.add(doing))
    bank = MemoryBank.load(out)
    assert list(bank.sentences) == made.sentences == ["A dog runs.", "A cat sits on a couch .", "A cat"]
    assert bank.encoder == {"text_encoder": "letters"}
    assert bank.source == {"files": ["plain.txt"], "sentences": 3, "phrases": 0}
    np.testing.assert_allclose(bank.vectors, LetterEncoder().embed(made.sentences), atol=1e-3)
    assert said == {"reading files", "embedding"}


def test_phrases_seen_twice_join_the_sentences(tmp_path: Path) -> None:
    pytest.importorskip("spacy", reason="needs the extra 'language'")
    texts = tmp_path / "texts.txt"
    texts.write_text("A brown dog lies on a couch.\nThe brown dog barks.\nA cat sees a couch\nA couch.\n")
    collected = collect([texts])
    add_phrases(collected)
    # The couch is there as a sentence of its own; the cat is there only once.
    assert collected.sentences[4:] == ["a brown dog"]
    assert collected.phrases == 1


@pytest.mark.parametrize(
    ("files", "options", "reason"),
    [([], {}, "are none"), (["plain.txt"], {"limit": 0}, "limit"), (["empty.txt"], {}, "hold no sentence")],
)
def test_nothing_to_remember_is_a_clear_error(
    plain: Path, tmp_path: Path, files: list[str], options: dict[str, int], reason: str
) -> None:
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(InvalidValue, match=reason):
        build_memory([tmp_path / name for name in files], tmp_path / "b.safetensors", LetterEncoder(), **options)  # type: ignore[arg-type]
    assert not (tmp_path / "b.safetensors").exists()


def test_a_bank_that_has_another_ending_is_refused_before_any_work(plain: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"should end in \.safetensors"):
        build_memory([plain], tmp_path / "bank.gz", LetterEncoder())
    with pytest.raises(InvalidFile, match="cannot be opened"):
        build_memory([tmp_path / "nowhere.txt"], tmp_path / "bank.safetensors", LetterEncoder())
