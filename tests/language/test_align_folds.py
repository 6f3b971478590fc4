"""The harness of the aligner: nothing is measured on what it was learnt from, and rooms keep the words' times."""

from __future__ import annotations

import numpy as np
import pytest
from bench import align_folds, rooms
from bench.align_listen import FITTING, WRONG, Told, placed, plan

from saywhere.language.opinion import Opinion
from saywhere.language.sound import Sound

RATE_HZ = 16_000
WORDS = ["a", "man", "walks", "to", "the", "left", "and", "holds", "a", "cake"]
STARTS_S = np.arange(len(WORDS)) * 0.5 + 1.0


def hearing(voice: str, number: int, late_s: float, *, fits: bool = True) -> align_folds.Hearing:
    chance = np.random.default_rng(number)
    opinions = {}
    for name in ("close", "wide"):
        starts_s = STARTS_S + late_s + chance.normal(0, 0.02, len(WORDS))
        if not fits:
            starts_s = np.sort(chance.uniform(0, 8, len(WORDS)))
        scores = np.full(len(WORDS), -2.5 if fits else -4.5)
        opinions[name] = Opinion(starts_s, starts_s + 0.3, scores, np.full(len(WORDS), 2.0 if fits else 1.0))
    room = "clear" if fits else WRONG
    true = STARTS_S if fits else np.zeros(0)
    return align_folds.Hearing(room, f"{voice}{number}", voice, WORDS, true, 8.0, opinions)


def hearings(late_s: dict[str, float]) -> list[align_folds.Hearing]:
    return [
        hearing(voice, number, late, fits=fits)
        for voice, late in late_s.items()
        for number in range(6)
        for fits in (True, False)
    ]


def test_a_voice_is_judged_by_what_the_others_taught() -> None:
    found = align_folds.crossed(hearings({"a": 0.1, "b": 0.1, "c": 0.3}))
    fitting = {
        voice: [one for one in found if one.hearing.voice == voice and one.hearing.room == "clear"] for voice in "abc"
    }
    assert np.median(np.concatenate([one.off_s for one in fitting["c"]])) == pytest.approx(0.2, abs=0.03)
    assert not any(one.refused for ones in fitting.values() for one in ones)
    wrong = [one for one in found if one.hearing.room == WRONG]
    assert sum(one.refused for one in wrong) >= len(wrong) - 1


def test_a_refused_recording_counts_as_all_its_words_missed() -> None:
    found = align_folds.crossed(hearings({"a": 0.1, "b": 0.1, "c": 0.1}))
    one = next(one for one in found if one.hearing.room == "clear")
    lost = align_folds.Outcome(one.hearing, True, np.full(len(WORDS), np.inf), np.zeros(len(WORDS)))
    kept = [other for other in found if other is not one]
    before, after = align_folds.tables(found), align_folds.tables([*kept, lost])
    assert "| clear | 180 | 100.0% | 0 of 18 |" in before
    assert "| clear | 180 | 94.4% | 1 of 18 |" in after


@pytest.mark.parametrize("room", list(rooms.ROOMS))
def test_rooms_change_the_sound_and_not_its_time(room: str) -> None:
    t = np.arange(2 * RATE_HZ)
    samples = np.where((t > RATE_HZ) & (t < 1.5 * RATE_HZ), 8_000 * np.sin(t * 0.3), 5 * np.sin(t * 0.01)).astype(
        np.int16
    )
    sound = rooms.in_room(Sound(samples, RATE_HZ), room, 0)
    assert len(sound.samples) == len(samples)
    assert not np.array_equal(sound.samples, samples)
    loud = np.flatnonzero(np.abs(sound.samples.astype(int)) > 0.5 * np.abs(sound.samples.astype(int)).max())
    assert RATE_HZ <= loud[0] < 1.05 * RATE_HZ


def test_longer_pauses_move_the_words_after_them() -> None:
    samples = np.random.default_rng(0).normal(0, 20, 8 * RATE_HZ)
    for start_s in STARTS_S:
        samples[int(start_s * RATE_HZ) :][: RATE_HZ // 4] += 8_000 * np.sin(np.arange(RATE_HZ // 4) * 0.3)
    told = Told("one", "a", Sound(samples.astype(np.int16), RATE_HZ), WORDS, STARTS_S.tolist())
    slow = placed([told], 0, "pauses")
    assert slow.sound.duration_s == pytest.approx(8.0 + 2.0)
    assert np.subtract(slow.starts_s, STARTS_S).tolist() == [0.0] * 5 + [2.0] * 5
    at = int(slow.starts_s[5] * RATE_HZ)
    assert np.abs(slow.sound.samples[at + 800 : at + 3_000]).max() > 6_000
    assert np.abs(slow.sound.samples[at - RATE_HZ : at - 100]).max() < 200


def test_every_recording_is_heard_in_every_room_and_beside_another_text() -> None:
    heard = list(plan(3))
    assert sorted(heard) == sorted((room, i) for room in (*FITTING, WRONG) for i in range(3))
