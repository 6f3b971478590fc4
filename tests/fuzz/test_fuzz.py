"""A thousand spoilt files in every build, the same each time; `make fuzz` makes a hundred thousand."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saywhere.core.errors import SaywhereError
from saywhere.formats import registry
from tests.fuzz.mutations import mutated
from tests.fuzz.running import Outcomes, attempt, run
from tests.fuzz.targets import Target, targets

CASES = 1_000
TARGETS = targets()


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_spoilt_file_is_read_or_refused_with_a_clear_error(target: Target, tmp_path: Path) -> None:
    weights = sum(one.weight for one in TARGETS)
    found = run(target, max(10, math.ceil(CASES * target.weight / weights)), 2026, tmp_path)
    assert found.failures == []
    assert found.refused > 0


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_what_is_spoilt_was_good_before(target: Target) -> None:
    name = next(iter(target.files))
    assert attempt(target, name, target.files[name])


def test_every_format_is_fuzzed() -> None:
    assert set(registry.READABLE) <= {target.name for target in TARGETS}


def test_the_same_seed_gives_the_same_cases_and_others_give_others() -> None:
    good = json.dumps({"a": [1, 2, {"b": "text"}]}).encode()
    cases = [[mutated(good, random.Random(seed)) for seed in range(start, start + 50)] for start in (0, 0, 100)]
    assert cases[0] == cases[1]
    assert len(set(cases[0]) | set(cases[2])) > 60


def _crash(_: Path) -> None:
    import os
    import signal

    os.kill(os.getpid(), signal.SIGSEGV)


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (lambda _: [][1], "IndexError"),
        (lambda _: bytearray(8 * 2**30), "MemoryError"),
        (_crash, "signal 11"),
    ],
)
def test_failures_of_every_kind_are_found_and_kept(read: Any, said: str, tmp_path: Path) -> None:
    found = run(Target("bad reader", {"a": b"x"}, read), 2, 0, tmp_path)
    assert (found.read, found.refused, found.failed) == (0, 0, 2)
    assert said in found.failures[0]
    assert len(list(tmp_path.glob("*/report.txt"))) == 2


def test_outcomes_add_up() -> None:
    every = Outcomes(1, 2, ["a"])
    every += Outcomes(10, 20)
    assert (every.read, every.refused, every.failed) == (11, 22, 1)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(max_size=8), inside, max_size=4),
    max_leaves=12,
)
_KEYS = ("image_id", "images", "annotations", "id", "traces", "caption", "questions", "bbox", "captions", "regions")


_OF_JSON = [name for name in registry.READABLE if name not in ("hat", "osie", "parquet", "trecs")]


@pytest.mark.parametrize("name", _OF_JSON)
@settings(max_examples=15)
@given(documents=st.lists(_JSON | st.dictionaries(st.sampled_from(_KEYS), _JSON, max_size=6), min_size=1, max_size=3))
def test_any_json_is_read_or_refused(name: str, documents: list[Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("any") / "a.json"
    path.write_text("\n".join(json.dumps(one) for one in documents), encoding="utf-8", errors="surrogatepass")
    try:
        values = [str(value) for value in registry.get(name).module.read(path)]
    except SaywhereError as error:
        values = [str(error)]
    assert all(values)
