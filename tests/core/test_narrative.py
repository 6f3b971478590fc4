from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from saywhere.core import InvalidValue, Narrative, Trace, Utterance
from tests.strategies import narratives, seconds


def test_a_narrative_is_named_by_data_set_image_and_annotator() -> None:
    assert Narrative("7", dataset_id="coco", annotator_id="3").id == "coco/7/3"
    assert Narrative("7").id == "7"


def test_a_narrative_without_an_image_is_refused() -> None:
    with pytest.raises(InvalidValue, match="names no image"):
        Narrative("")


def test_utterances_out_of_order_are_refused() -> None:
    with pytest.raises(InvalidValue, match="before the one ahead"):
        Narrative("7", utterances=(Utterance("a", 1, 2), Utterance("b", 0.5, 2)))


@given(narratives(), seconds)
def test_cutting_a_narrative_loses_no_word_and_no_point(narrative: Narrative, moment: float) -> None:
    parts = narrative.between(-np.inf, moment), narrative.between(moment, np.inf)
    assert sum(len(part.utterances) for part in parts) == len(narrative.words)
    assert sum(len(part.trace) for part in parts) == len(narrative.trace)


def test_the_end_is_when_voice_and_pointer_are_done() -> None:
    said = (Utterance("a", 0, 2),)
    assert Narrative("7", utterances=said).end_s == 2
    assert Narrative("7", utterances=said, trace=Trace([(0, 0, 5)])).end_s == 5
    assert Narrative("7").end_s == 0


@pytest.mark.parametrize("tag", ["e", "en_GB", "German, I think", "en-", "x" * 36, "de\n"])
def test_what_is_no_tag_of_a_language_is_refused(tag: str) -> None:
    with pytest.raises(InvalidValue, match="language"):
        Narrative("7", language=tag)
