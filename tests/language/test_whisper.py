"""Whisper: its features against an outside reference, its windows, and, where its files are, real speech."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from saywhere.assets import is_cached
from saywhere.core.errors import InvalidValue
from saywhere.language import whisper
from saywhere.language.log_mel import RATE_HZ, log_mel
from saywhere.language.sound import Sound
from saywhere.language.whisper import Whisper

VOICES = Path(os.environ.get("SAYWHERE_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "data"


def test_the_features_are_those_of_transformers():
    transformers = pytest.importorskip("transformers")
    wave = np.random.default_rng(0).normal(0, 0.1, 5 * RATE_HZ).astype(np.float32)
    wave *= np.sin(np.arange(len(wave)) / 3_000).astype(np.float32)
    theirs = transformers.WhisperFeatureExtractor()(wave, sampling_rate=RATE_HZ, return_tensors="np").input_features[0]
    assert np.abs(log_mel(wave) - theirs).max() < 1e-4


def test_windows_are_cut_in_pauses_and_lose_nothing():
    samples = np.random.default_rng(0).normal(0, 0.1, 70 * RATE_HZ).astype(np.float32)
    samples[25 * RATE_HZ : 26 * RATE_HZ] *= 1e-3
    pieces = whisper._windows(samples)
    assert np.array_equal(np.concatenate(pieces), samples)
    assert 25 < len(pieces[0]) / RATE_HZ < 26
    assert max(len(piece) for piece in pieces) <= 30 * RATE_HZ


def test_long_pauses_are_shortened_and_speech_is_kept():
    samples = np.full(20 * RATE_HZ, 10, dtype=np.int16)
    voice = (8_000 * np.sin(np.arange(RATE_HZ) * 0.1)).astype(np.int16)
    samples[2 * RATE_HZ : 3 * RATE_HZ] = samples[15 * RATE_HZ : 16 * RATE_HZ] = voice
    kept = whisper._without_pauses(Sound(samples, RATE_HZ))
    assert (np.abs(kept) > 0.1).sum() == (np.abs(samples) > 0.1 * 2**15).sum()
    assert 4 <= len(kept) / RATE_HZ < 5


def test_a_text_that_goes_round_in_circles_is_seen():
    assert whisper._repetition("and I will now turn around " * 20) > whisper._REPETITIVE
    assert whisper._repetition("a group of people is cycling on the grey road") < whisper._REPETITIVE


@pytest.mark.skipif(not is_cached("whisper-tiny"), reason="needs saywhere assets fetch whisper-tiny")
@pytest.mark.skipif(not (VOICES / "video_narratives").exists(), reason="needs the shared recordings")
def test_a_real_voice_is_written_down_and_can_be_stopped():
    pytest.importorskip("onnxruntime")
    bench = pytest.importorskip("bench.bench_speech")
    sound = bench.decoded(VOICES / "video_narratives" / "recordings" / "0_0.webm")
    model, told = Whisper("whisper-tiny"), []
    said = model.transcribe(sound, None, lambda *how: told.append(how))
    assert said.language == "en"
    assert "people is cycling on the grey road" in said.text
    assert told[-1][1] == told[-1][2] > 0

    def stop(doing: str, done: int, total: int) -> None:
        if doing == "writing":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.transcribe(sound, "en", stop)
    with pytest.raises(InvalidValue, match="silent"):
        model.transcribe(Sound(np.zeros(3 * RATE_HZ, dtype=np.int16), RATE_HZ), None, lambda *_: None)
    with pytest.raises(InvalidValue, match="'xx' is not known"):
        model.transcribe(sound, "xx", lambda *_: None)
