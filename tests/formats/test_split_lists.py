"""Official lists of splits, in their three forms."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from saywhere.core import InvalidFile
from saywhere.formats.split_lists import read_split_list, read_split_lists

SPLITS = ("train", "restval", "val", "test")


def karpathy(folder: Path, *splits: str | None) -> Path:
    images = [{"cocoid": i, **({"split": split} if split else {})} for i, split in enumerate(splits)]
    (folder / "dataset_coco.json").write_text(json.dumps({"images": images}))
    return folder / "dataset_coco.json"


@pytest.mark.parametrize("given", ["", "test", "train"])
def test_what_an_image_says_of_itself_goes_before_what_its_list_is_called(tmp_path: Path, given: str) -> None:
    found = read_split_list(karpathy(tmp_path, *SPLITS), given)
    assert found == {"0": "train", "1": "train", "2": "validation", "3": "test"}


def test_images_that_do_not_say_so_are_of_the_given_split(tmp_path: Path) -> None:
    path = karpathy(tmp_path, "train", None)
    assert read_split_lists([f"test={path}"]) == {"0": "train", "1": "test"}
    with pytest.raises(InvalidFile, match="does not say which split"):
        read_split_list(path)


@pytest.mark.parametrize("given", ["", "test"])
def test_an_unknown_split_is_refused_whatever_the_list_is_called(tmp_path: Path, given: str) -> None:
    with pytest.raises(InvalidFile, match="image 0 is of the split 'extra'"):
        read_split_list(karpathy(tmp_path, "extra"), given)
