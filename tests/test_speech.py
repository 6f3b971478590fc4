"""Forced alignment on real recordings, sound files that lie about themselves, and rough pronunciations."""

from __future__ import annotations

import io
import struct
import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from saywhere.core import InvalidFile, InvalidValue, Narrative
from saywhere.formats import video_narratives
from saywhere.formats.record import InvalidRecord
from saywhere.language import sound as sound_module
from saywhere.language.pronunciation import sounds, spoken_parts
from saywhere.language.sound import Sound, read_wav, write_wav
from saywhere.language.speech import align_words

FOLDER = "data/video_narratives"
PHONES = "AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH"


def decoded(path: Path, rate_hz: int) -> Sound:
    av = pytest.importorskip("av", reason="decoding the recordings needs PyAV")
    resampler = av.AudioResampler(format="s16", layout="mono", rate=rate_hz)
    with av.open(str(path)) as container:
        frames = [part for frame in container.decode(audio=0) for part in resampler.resample(frame)]
    return Sound(np.concatenate([frame.to_ndarray().ravel() for frame in frames]), rate_hz)


@pytest.fixture(scope="module")
def told(shared: Callable[[str], Path]) -> Narrative:
    """A narrative of ten words whose times the data set gives: "A group of people is cycling on the grey road." """
    pytest.importorskip("pocketsphinx", reason="aligning needs the extra speech")
    record = next(video_narratives.read(shared(f"{FOLDER}/OVIS_train_sample.jsonl")))
    assert not isinstance(record, InvalidRecord)
    return record.actors[0].narrative


@pytest.fixture(scope="module")
def recording(told: Narrative, shared: Callable[[str], Path]) -> Sound:
    return decoded(shared(f"{FOLDER}/recordings/{Path(told.audio).name}"), 48_000)


def texts(told: Narrative) -> list[str]:
    return told.caption.split()


def starts_s(words: object) -> list[float]:
    return [word.start_s for word in words]  # type: ignore[attr-defined]


def test_words_of_a_real_recording_start_within_a_quarter_of_a_second_of_the_given_times(
    told: Narrative, recording: Sound
) -> None:
    words = align_words(recording, texts(told))
    assert [word.text for word in words] == texts(told)
    np.testing.assert_allclose(starts_s(words), [u.start_s for u in told.utterances], atol=0.25)


def test_windows_never_overlap_and_stay_within_the_recording(told: Narrative, recording: Sound) -> None:
    words = align_words(recording, texts(told))
    times = [time for word in words for time in (word.start_s, word.end_s)]
    assert times == sorted(times)
    assert all(word.end_s > word.start_s for word in words)
    assert times[0] >= 0
    assert times[-1] <= recording.duration_s


def test_words_that_no_dictionary_has_and_signs_cost_the_others_nothing(told: Narrative, recording: Sound) -> None:
    plain = align_words(recording, texts(told))
    strange = ["—", *texts(told)[:6], "人々", "…", *texts(told)[6:8], "groaey", "road.", "™"]
    words = align_words(recording, strange)
    assert [word.text for word in words] == strange
    same = [word for word in words if word.text in texts(told)]
    kept = [word for word in plain if word.text != "grey"]
    np.testing.assert_allclose(starts_s(same)[1:-1], starts_s(kept)[1:-1], atol=0.15)
    grey, groaey = plain[8], words[-3]
    assert abs(groaey.start_s - grey.start_s) < 0.25
    times = [time for word in words for time in (word.start_s, word.end_s)]
    assert times == sorted(times)


def test_a_word_that_was_not_said_is_put_between_its_neighbours(told: Narrative, recording: Sound) -> None:
    plain = align_words(recording, texts(told))
    words = align_words(recording, [*texts(told)[:4], "elephant", *texts(told)[4:]])
    kept = [word for word in words if word.text != "elephant"]
    np.testing.assert_allclose(starts_s(kept), starts_s(plain), atol=0.1)
    assert words[3].end_s <= words[4].start_s < words[4].end_s <= words[5].start_s


def test_silence_before_the_recording_moves_every_word_by_as_much(told: Narrative, recording: Sound) -> None:
    room = recording.samples[: recording.rate_hz]
    later = Sound(np.concatenate([room, room, room, recording.samples]), recording.rate_hz)
    moved = np.array(starts_s(align_words(later, texts(told)))) - starts_s(align_words(recording, texts(told)))
    np.testing.assert_allclose(moved, 3.0, atol=0.05)


def test_a_text_that_was_not_said_is_refused(told: Narrative, recording: Sound) -> None:
    other = "Zebras zigzag joyfully through vivid jungles of fizzy orange juice every Thursday"
    with pytest.raises(InvalidValue, match="not what is said"):
        align_words(recording, other.split())


def test_more_words_than_the_speech_has_room_for_are_refused(told: Narrative, recording: Sound) -> None:
    with pytest.raises(InvalidValue, match="too little for 300 words"):
        align_words(recording, texts(told) * 30)


def tone(seconds: float, amplitude: float, rate_hz: int = 16_000) -> Sound:
    t = np.arange(round(seconds * rate_hz)) / rate_hz
    return Sound((amplitude * np.sin(2 * np.pi * 220 * t)).astype(np.int16), rate_hz)


def noise(seconds: float, amplitude: float) -> Sound:
    return Sound(np.random.default_rng(0).normal(0, amplitude, round(seconds * 16_000)).astype(np.int16), 16_000)


@pytest.mark.parametrize(
    ("sound", "reason"),
    [
        (Sound(np.zeros(0, np.int16), 16_000), "too short"),
        (tone(0.2, 9_000), "too short"),
        (tone(2, 0), "silent"),
        (noise(2, 5), "silent"),
        (noise(2, 2_000), "no speech stands out"),
        (tone(2, 9_000), "no speech stands out"),
    ],
)
def test_recordings_without_speech_are_refused_with_the_reason(sound: Sound, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        align_words(sound, ["hello", "world"])


def test_one_loud_word_in_a_long_silence_is_heard() -> None:
    quiet, loud = noise(30, 3).samples, noise(0.5, 3_000).samples
    heard = Sound(np.concatenate([quiet, loud, quiet]), 16_000).speech_frames()
    np.testing.assert_allclose(np.flatnonzero(heard)[[0, -1]], [2990, 3059], atol=1)


@pytest.mark.parametrize("words", [[], ["word"] * 2_001], ids=["none", "too many"])
def test_no_words_and_too_many_words_are_refused(words: list[str]) -> None:
    with pytest.raises(InvalidValue, match="the text"):
        align_words(tone(1, 9_000), words)


def test_text_that_cannot_be_said_in_english_is_refused() -> None:
    pytest.importorskip("pocketsphinx", reason="aligning needs the extra speech")
    voice = Sound(np.concatenate([noise(1, 5).samples, noise(1, 2_000).samples]), 16_000)
    with pytest.raises(InvalidValue, match="no word that can be said"):
        align_words(voice, ["猫", "—"])


# --- sound files ---


def wav(rate_hz: int = 16_000, channels: int = 1, width: int = 2, n: int = 100) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(width)
        out.setframerate(rate_hz)
        out.writeframes(bytes(n * width * channels))
    return file.getvalue()


@given(st.lists(st.integers(-(2**15), 2**15 - 1), max_size=50), st.integers(8_000, 96_000))
def test_sound_survives_being_written_and_read(samples: list[int], rate_hz: int) -> None:
    sound = read_wav(write_wav(Sound(np.array(samples, dtype=np.int16), rate_hz)))
    assert sound.rate_hz == rate_hz
    assert sound.samples.tolist() == samples


def test_what_we_write_other_readers_read() -> None:
    with wave.open(io.BytesIO(write_wav(tone(0.1, 1_000, 44_100)))) as file:
        assert file.getparams()[:4] == (1, 2, 44_100, 4_410)


def test_two_channels_become_their_mean() -> None:
    stereo = wav(channels=2, n=2)
    stereo = stereo[:-8] + struct.pack("<hhhh", 30_000, 32_000, -5, -7)
    assert read_wav(stereo).samples.tolist() == [31_000, -6]


GOOD = wav()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a WAV"),
        (b"OggS" + bytes(100), "not a WAV"),
        (b"RIFF\0\0\0\0WAVE", "no format or no samples"),
        (GOOD[:-10], "cut off"),
        (GOOD[:40] + b"\xff\xff\xff\xff" + GOOD[44:], "cut off"),
        (GOOD[:16] + b"\x08\0\0\0" + GOOD[20:28] + GOOD[36:], "format that is cut off"),
        (wav(width=1), "8 bits"),
        (wav(width=3), "24 bits"),
        (wav(channels=3), "3 channels"),
        (GOOD[:32] + b"\x03\0" + GOOD[34:], "blocks of 3 bytes"),
        (wav(rate_hz=7_999), "7999 samples a second"),
        (wav(rate_hz=200_000), "200000 samples a second"),
        (GOOD[:20] + b"\x03\0" + GOOD[22:], "kind 3"),
        (GOOD[:24] + b"\0\0\0\0" + GOOD[28:], "0 samples a second"),
    ],
)
def test_files_that_are_not_16_bit_pcm_or_lie_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        read_wav(data)


def test_a_recording_that_is_too_long_or_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidValue, match="longer than 600 s"):
        read_wav(wav(rate_hz=8_000, n=600 * 8_000 + 1))
    monkeypatch.setattr(sound_module, "LARGEST_BYTES", 100)
    with pytest.raises(InvalidValue, match="at most 100"):
        read_wav(GOOD)


def test_a_recording_that_is_not_there_is_an_invalid_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"gone\.wav"):
        read_wav(tmp_path / "gone.wav")


@given(st.binary(max_size=80), st.integers(0, len(GOOD)))
@example(b"LIST\xff\xff\xff\xff", 12)
def test_damaged_bytes_are_sound_or_an_invalid_value_and_nothing_else(junk: bytes, at: int) -> None:
    data = GOOD[:at] + junk + GOOD[at + len(junk) :]
    try:
        sound = read_wav(data)
    except InvalidValue:
        return
    assert 2 * len(sound.samples) <= len(data)


@pytest.mark.parametrize("rate_hz", [8_000, 44_100, 48_000])
def test_resampling_keeps_the_pitch_and_the_length(rate_hz: int) -> None:
    heard = tone(1, 10_000, rate_hz).resampled(16_000)
    assert heard.duration_s == pytest.approx(1, abs=1e-3)
    assert int(np.abs(np.fft.rfft(heard.samples)).argmax()) == 220
    assert np.abs(heard.samples[1000:-1000]).max() == pytest.approx(10_000, rel=0.02)


# --- pronunciation ---


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("Road.", ["road"]),
        ("white-painted", ["white", "painted"]),
        ("don’t", ["don't"]),
        ("'cat'", ["cat"]),
        ("café", ["cafe"]),
        ("21", ["twenty", "one"]),
        ("007", ["zero", "zero", "seven"]),
        ("15%", ["fifteen", "percent"]),
        ("&", ["and"]),
        ("—", []),
        ("猫", []),
        ("x" * 41, []),
    ],
)
def test_what_is_said_for_a_written_word(word: str, parts: list[str]) -> None:
    assert spoken_parts(word) == parts


@pytest.mark.parametrize(
    ("part", "phones"),
    [
        ("tv", "T IY V IY"),
        ("shiba", "SH IH B AE"),
        ("bokeh", "B AA K EH HH"),
        ("vape", "V EY P"),
        ("selfie", "S EH L F IY"),
        ("quokka", "K W AA K AE"),
    ],
)
def test_rough_pronunciations_are_near(part: str, phones: str) -> None:
    assert sounds(part) == phones


@given(st.text(max_size=30))
@example("qqq")
@example("e")
def test_every_part_of_any_text_has_phones_that_the_model_knows(text: str) -> None:
    for part in spoken_parts(text):
        phones = sounds(part).split()
        assert phones
        assert set(phones) <= set(PHONES.split())
