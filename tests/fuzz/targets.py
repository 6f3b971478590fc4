"""What is fuzzed: every format, kind of file and model folder, with small good ones to start from."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from PIL import Image

from saywhere.core import InvalidFile, Narrative, Trace, Utterance
from saywhere.formats import registry
from saywhere.formats.record import InvalidRecord
from saywhere.language.sound import Sound, read_wav, write_wav
from saywhere.language.vocabulary import Vocabulary
from saywhere.learn.recipe import read_recipe
from saywhere.models.feature_files import open_records
from saywhere.store import Store, StoreWriter
from saywhere.vision import read_photo

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@dataclass(frozen=True)
class Target:
    """files: good ones by name, in one folder. read: reads that folder, all of it.

    digests: whether config.json names the SHA-256 of the files beside it, which is mended so that more is read.
    weight: how many cases it gets beside others; models take longer.
    """

    name: str
    files: dict[str, bytes]
    read: Callable[[Path], Any]
    digests: bool = False
    weight: float = 1.0

    def write(self, folder: Path, changed: str, content: bytes) -> None:
        """The files, one of them changed."""
        for name, good in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if name == changed else good)
        described = folder / Path(changed).parent / "config.json"
        if self.digests and described.exists() and described.name != Path(changed).name:
            _mend(described, Path(changed).name, content)


def _mend(described: Path, name: str, content: bytes) -> None:
    config = json.loads(described.read_bytes())
    config["files"][name] = hashlib.sha256(content).hexdigest()
    described.write_text(json.dumps(config))


def targets(*, folders: bool = True) -> list[Target]:
    """All of them. folders: also models', which import torch."""
    found = [*_formats(), *_features(), *_others()]
    return [*found, *_models()] if folders else found


_POINTS = [{"x": 0.1 * i, "y": 0.5, "t": 0.2 * i} for i in range(4)]
_IMAGES = [{"id": 1, "file_name": "1.jpg", "width": 64, "height": 48}]
_DOCUMENTS: dict[str, dict[str, Any]] = {
    "video-narratives": {
        "a.jsonl": {
            **{"vidln_id": "1", "dataset_id": "d", "video_id": "v", "annotator_id": "7", "keyframe_names": ["f"]},
            "actor_narratives": [
                {
                    "actor_name": "cat",
                    "keyframe_selection_indices": [0],
                    "recording_start_time_ms_since_epoch": 1000.0,
                    "traces_start_time_ms_since_epoch": 990.0,
                    "caption": "a cat",
                    "traces": [[{"x": 0.5, "y": 0.5, "time_ms_since_epoch": 1100.0, "kf_idx": 0}]],
                    "time_alignment": [
                        {
                            **{"referenced_word": "cat", "referenced_word_start_idx": 2, "referenced_word_end_idx": 5},
                            **{"start_ms": 10.0, "end_ms": 200.0},
                        }
                    ],
                    "noun_segments": [[2, 5]],
                }
            ],
        }
    },
    "hl": {
        "a.jsonl": {
            "file_name": "1.jpg",
            "captions": {"scene": ["in a kitchen"], "object": ["a cup"]},
            "confidence": {"scene": [5]},
            "purity": {"scene": [0.5]},
            "diversity": {"scene": 0.1},
        }
    },
    "pope": {"a.json": {"question_id": 1, "image": "1.jpg", "text": "Is there a cup?", "label": "yes"}},
    "vsr": {"a.json": {"image": "1.jpg", "caption": "The cup is on the table.", "label": 1, "relation": "on"}},
    "web-annotation": {
        "a.json": {
            "@context": "http://www.w3.org/ns/anno.jsonld",
            "items": [
                {
                    "body": [{"value": "a cup", "utterances": [{"text": "cup", "startTime": 0.1, "endTime": 0.4}]}],
                    "target": [
                        {
                            "source": "d/1",
                            "pointTimes": [0.1, 0.3],
                            "selector": {
                                "value": '<svg viewBox="0 0 1 1"><polyline points="0.1,0.2 0.3,0.4"/></svg>',
                            },
                        }
                    ],
                },
                {"bodyValue": "a cup", "target": "1.jpg#xywh=percent:1,2,3,4", "creator": {"name": "Ada"}},
            ],
        }
    },
    "coco-captions": {"a.json": {"images": _IMAGES, "annotations": [{"id": 1, "image_id": 1, "caption": "a cup"}]}},
    "coco-instances": {
        "a.json": {
            "images": _IMAGES,
            "categories": [{"id": 1, "name": "cup", "supercategory": "kitchen"}],
            "annotations": [
                {
                    **{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 10, 20], "area": 200, "iscrowd": 0},
                    "segmentation": [[1, 2, 11, 2, 11, 22, 1, 22]],
                },
                {
                    **{"id": 2, "image_id": 1, "category_id": 1, "bbox": [1, 2, 10, 20], "area": 200, "iscrowd": 1},
                    "segmentation": {"size": [48, 64], "counts": [100, 50, 2922]},
                },
            ],
        }
    },
    "coco-results": {
        "a.json": [
            {"image_id": 1, "caption": "a cup"},
            {"image_id": 1, "category_id": 1, "score": 0.5, "bbox": [1, 2, 3, 4]},
        ]
    },
    "entities": {"a.json": {"1.jpg": {"a cup\na red cup": [[1, 2, 30, 40]], "nothing": []}}},
    "visual-genome": {
        "a.json": [
            {
                "id": 1,
                "regions": [
                    {"region_id": 1, "image_id": 1, "x": 1, "y": 2, "width": 3, "height": 4, "phrase": "a cup"}
                ],
            }
        ]
    },
    "refcoco": {
        "a.json": [
            {
                **{"ref_id": 1, "ann_id": 1, "image_id": 1, "category_id": 1, "split": "val", "file_name": "1.jpg"},
                "sentences": [{"sent_id": 1, "sent": "left cup", "raw": "left cup", "tokens": ["left", "cup"]}],
            }
        ]
    },
    "vqa": {"a.json": {"questions": [{"question_id": 1, "image_id": 1, "question": "is it red?"}]}},
    "aokvqa": {
        "a.json": [
            {
                **{"question_id": "a", "image_id": 1, "question": "is it red?", "choices": ["yes", "no"]},
                **{"correct_choice_idx": 1, "direct_answers": ["no", "no"], "rationales": ["It is blue."]},
            }
        ]
    },
    "salicon": {
        "a.json": {
            "images": _IMAGES,
            "annotations": [{"id": 1, "image_id": 1, "worker_id": 2, "fixations": [[1, 1], [40, 60]]}],
        }
    },
}
_DETECTED = "a file of no told format"


def _read_all(name: str) -> Callable[[Path], Any]:
    def read(folder: Path) -> None:
        files = sorted(folder.iterdir(), key=lambda path: (not path.name.endswith(".ids.txt"), path))
        path = folder if name in ("hat", "osie") or files[0].is_dir() else files[0]
        kind = registry.get(name) if name else registry.detect(path)
        bad = 0
        for value in kind.module.read(path):
            str(value)
            bad += isinstance(value, InvalidRecord)
            if isinstance(value, Narrative):
                value.word_boxes()
        if bad:
            raise InvalidFile(path, f"{bad} bad records")

    return read


def _narratives() -> list[Narrative]:
    trace = Trace([(point["x"], point["y"], point["t"]) for point in _POINTS], (0, 2))
    said = (Utterance("a red", 0.0, 0.4), Utterance("cup", 0.4, 0.4))
    return [Narrative(f"photo {i}", "a red cup", said, trace, "data", str(i)) for i in range(2)]


def _formats() -> Iterator[Target]:
    for name, documents in _DOCUMENTS.items():
        files = {file: json.dumps(content).encode() for file, content in documents.items()}
        yield Target(name, files, _read_all(name))
    with tempfile.TemporaryDirectory() as made:
        for name, file in (("localized-narratives", "a.jsonl"), ("parquet", "a.parquet")):
            registry.get(name).write(Path(made) / file, _narratives())
            yield Target(name, {file: (Path(made) / file).read_bytes()}, _read_all(name))
            yield Target(f"{_DETECTED}: {name}", {file: (Path(made) / file).read_bytes()}, _read_all(""))
        registry.get("localized-narratives").write(Path(made) / "a.jsonl.gz", _narratives())
        packed = (Path(made) / "a.jsonl.gz").read_bytes()
        yield Target("gzip", {"a.jsonl.gz": packed}, _read_all("localized-narratives"))
    told = b"val\t139\t41\t0.1\t0.2\t0.3\t0.4\tleft cup\n"
    yield Target("referring-lines", {"a.tsv": told}, _read_all("referring-lines"))
    found = b'{"expression_id":1,"box_xyxy":[0.1,0.2,0.3,0.4],"mask":{"size":[2,3],"counts":[1,2,3]}}\n'
    yield Target("referring-results", {"a.jsonl": found}, _read_all("referring-results"))
    words = {"a.ids.txt": b"1_2\n", "a.words.txt": b"a red cup\n", "a.cleaned_tags.txt": b"cup cup cup\n"}
    yield Target("trecs", words, _read_all("trecs"))
    grey = _encoded(Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8)), "PNG")
    yield Target("hat", {"1_1.png": grey}, _read_all("hat"))
    yield Target("osie", {"1001.mat": _mat()}, _read_all("osie"))
    release = {
        "Sentences/1.txt": b"[/EN#1/people A man] walks\n",
        "Annotations/1.xml": b"<annotation><size><width>64</width><height>48</height><depth>3</depth></size><object>"
        b"<name>1</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox></object></annotation>",
    }
    yield Target("entities release", release, _read_all("entities"))


def _mat() -> bytes:
    from scipy.io import savemat

    file = io.BytesIO()
    columns = {"subj": np.array([[1], [1]]), "coord": np.array([[300, 400], [10, 20]]), "order": np.array([[1], [2]])}
    savemat(file, {"fixations": columns})
    return file.getvalue()


def _encoded(image: Image.Image, kind: str, **how: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **how)
    return file.getvalue()


def _features() -> Iterator[Target]:
    arrays = {"features": np.ones((3, 4), np.float32), "boxes": np.zeros((3, 4), np.float32)}
    plain, packed, one = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.savez(plain, **arrays)  # type: ignore[arg-type]
    np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]
    np.save(one, arrays["features"])
    files = {"f/1.npz": plain.getvalue(), "f/2.npz": packed.getvalue(), "f/3.npy": one.getvalue()}
    yield Target("npz and npy", files, _records("f"))
    row = b"1\t64\t48\t1\tAACAPwAAgD8AAIA/AACAPw==\tAACAPwAAgD8=\n"
    yield Target("tsv", {"f.tsv": row * 2}, _records("f.tsv"))
    values = {
        b"1": plain.getvalue(),
        b"2": msgspec.msgpack.encode({"features": {"type": "<f4", "shape": [1, 2], "data": bytes(8)}, "w": 3}),
        b"3": struct.pack("<II", 1, 2) + bytes(24),
        b"4": struct.pack("<II", 60, 60) + bytes(4 * 60 * 64),
    }
    with tempfile.TemporaryDirectory() as made:
        import h5py
        import lmdb

        with h5py.File(Path(made) / "f.h5", "w") as file:
            for number in ("1", "2"):
                file[f"{number}/features"] = arrays["features"]
                file.create_dataset(f"{number}/boxes", data=arrays["boxes"], chunks=(1, 4), compression="gzip")
        with h5py.File(Path(made) / "s.h5", "w") as file:
            file["image_ids"], file["image_features"] = [1, 2], np.ones((2, 3, 4), np.float32)
        path = Path(made) / "f.lmdb"
        with (
            closing(lmdb.open(str(path), subdir=False, map_size=2**20, lock=False)) as base,
            base.begin(write=True) as put,
        ):
            for key, value in values.items():
                put.put(key, value)
        for name in ("f.h5", "s.h5", "f.lmdb"):
            yield Target(name, {name: (Path(made) / name).read_bytes()}, _records(name))


def _records(name: str) -> Callable[[Path], Any]:
    def read(folder: Path) -> None:
        with closing(open_records(folder / name)) as records:
            for image_id in records.ids():
                records.read(image_id)

    return read


def _others() -> Iterator[Target]:
    rng = np.random.default_rng(0)
    image = Image.fromarray(rng.integers(0, 255, (24, 32, 3), dtype=np.uint8))
    for kind in ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM"):
        yield Target(f"photo {kind}", {"a": _encoded(image, kind)}, lambda folder: read_photo(folder / "a"))
    sound = write_wav(Sound((rng.normal(size=8_000) * 3_000).astype(np.int16), 8_000))
    yield Target("wav", {"a.wav": sound}, lambda folder: read_wav(folder / "a.wav"))
    words = Vocabulary.of_words(["a red cup"]).to_json().encode()
    pieces = Vocabulary.of_bpe(["a red cup on a red table"] * 3, 40).to_json().encode()
    for name, content in (("words", words), ("pieces", pieces)):
        yield Target(f"vocabulary of {name}", {"v.json": content}, lambda folder: Vocabulary.load(folder / "v.json"))
    recipes = Path(__file__).resolve().parents[2] / "recipes"
    recipe = sorted(recipes.glob("*.toml"))[0].read_bytes()
    yield Target("recipe", {"r.toml": recipe}, lambda folder: read_recipe(folder / "r.toml"))
    with tempfile.TemporaryDirectory() as made:
        fields = {"numbers": "float16", "text": "json", "raw": "bytes"}
        with StoreWriter(made, "things", fields, {"made": "here"}) as writer:
            for key in ("a", "b"):
                writer.add(key, numbers=np.ones((2, 3)), text={"a": [1, "x"]}, raw=b"123" if key == "a" else None)
        yield Target("store", _taken(Path(made)), _read_store)


def _read_store(folder: Path) -> None:
    store = Store(folder)
    for number in range(len(store)):
        dict(store[number])


def _taken(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def _models() -> Iterator[Target]:
    from tests.doors.model_folders import FOLDERS, TRACEVLM

    for name, kind in {**FOLDERS, "tracevlm": TRACEVLM}.items():
        made = Path(tempfile.mkdtemp())
        try:
            kind.save(made)
            yield Target(f"model {name}", _taken(made), kind.open, name != "memory", 0.1)
        finally:
            shutil.rmtree(made)
