"""Simulated rooms: what a microphone makes of a clear recording. Each gives the sound and where its moments went."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from saywhere.core.types import Floats
from saywhere.language.sound import Sound

Wave = Floats
Room = Callable[[Wave, int, np.random.Generator], Wave]
# Noise and music are so much weaker than the voice (decibels, mean power of its loudest tenth).
_SNR_DB = 15.0
_QUIET, _LOUD = 0.03, 12.0
_REVERB_S = 0.4
_PAUSE_S = 2.0


def noise(wave: Wave, rate_hz: int, chance: np.random.Generator) -> Wave:
    """A fan: noise that is weaker the higher it is."""
    power = np.fft.rfft(chance.normal(size=len(wave)))
    power /= np.sqrt(np.maximum(np.fft.rfftfreq(len(wave), 1 / rate_hz), 50))
    return wave + _beside(wave, np.fft.irfft(power, len(wave)))


def music(wave: Wave, rate_hz: int, chance: np.random.Generator) -> Wave:
    """Chords of three harmonic tones, half a second each."""
    t = np.arange(len(wave)) / rate_hz
    chord = (t // 0.5).astype(int)
    roots = 110 * 2 ** (chance.integers(0, 24, chord.max() + 1) / 12)
    tones = [np.sin(2 * np.pi * roots[chord] * part * over * t) / over for part in (1, 1.25, 1.5) for over in (1, 2, 3)]
    return wave + _beside(wave, np.sum(tones, axis=0))


def quiet(wave: Wave, _: int, __: np.random.Generator) -> Wave:
    """Far from the microphone: little gain, and every step of a sample counts."""
    return wave * _QUIET


def clipped(wave: Wave, _: int, __: np.random.Generator) -> Wave:
    """Too close to the microphone."""
    return wave * _LOUD


def reverb(wave: Wave, rate_hz: int, chance: np.random.Generator) -> Wave:
    """A bare room."""
    from scipy.signal import fftconvolve

    t = np.arange(int(_REVERB_S * rate_hz)) / rate_hz
    tail = chance.normal(size=len(t)) * np.exp(-6.9 * t / _REVERB_S)
    tail *= 0.7 / np.sqrt((tail**2).sum())
    tail[0] = 1.0
    return np.asarray(fftconvolve(wave, tail)[: len(wave)])


def telephone(wave: Wave, rate_hz: int, _: np.random.Generator) -> Wave:
    """300 to 3,400 Hz in steps of 8-bit μ-law."""
    from scipy.signal import butter, sosfilt

    narrow = np.asarray(sosfilt(butter(4, (300, 3_400), "band", fs=rate_hz, output="sos"), wave)) / 2**15
    coded = np.rint(np.sign(narrow) * np.log1p(255 * np.abs(narrow)) / np.log1p(255) * 127) / 127
    return np.asarray(np.sign(coded) * np.expm1(np.abs(coded) * np.log1p(255)) / 255 * 2**15)


ROOMS: dict[str, Room] = {
    "noise": noise, "music": music, "quiet": quiet, "clipped": clipped, "reverb": reverb, "telephone": telephone,
}  # fmt: skip


def in_room(sound: Sound, room: str, seed: int) -> Sound:
    """The recording as it would sound there; "clear" as it is."""
    if room == "clear":
        return sound
    wave = ROOMS[room](sound.samples.astype(np.float64), sound.rate_hz, np.random.default_rng(seed))
    return Sound(np.clip(np.rint(wave), -(2**15), 2**15 - 1).astype(np.int16), sound.rate_hz)


def with_pauses(sound: Sound, starts_s: Floats, seed: int) -> tuple[Sound, Floats]:
    """Two seconds of the room's own noise before every fifth word, and when the words start then."""
    from scipy.ndimage import uniform_filter1d

    level = uniform_filter1d(sound.samples.astype(np.float64) ** 2, sound.rate_hz // 50)
    room = sound.samples[level <= np.quantile(level, 0.1)]
    room = np.random.default_rng(seed).choice(room, int(_PAUSE_S * sound.rate_hz))
    pieces, moved, at = [], starts_s.copy(), 0
    for word in range(5, len(starts_s), 5):
        near = (np.array([starts_s[word - 1 : word + 1].mean(), starts_s[word]]) * sound.rate_hz).astype(int)
        cut = int(near[0] + level[near[0] : near[1] + 1].argmin())
        pieces += [sound.samples[at:cut], room]
        moved[word:] += _PAUSE_S
        at = cut
    return Sound(np.concatenate([*pieces, sound.samples[at:]]), sound.rate_hz), moved


def _beside(wave: Wave, other: Wave) -> Wave:
    """Another sound, so much weaker than the voice as set above."""
    loud = np.quantile(np.abs(wave), 0.9)
    return np.asarray(other / other.std() * loud * 10 ** (-_SNR_DB / 20))
