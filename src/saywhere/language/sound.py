"""Recorded sound: 16-bit PCM out of WAV files, resampled, and where in it somebody speaks."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import gcd
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from saywhere.core.errors import InvalidFile, InvalidValue

LONGEST_S = 600.0
LARGEST_BYTES = 64 * 2**20
RATES_HZ = (8_000, 96_000)
FRAMES_PER_S = 100
"""Loudness is looked at in frames of ten milliseconds."""

_PCM, _EXTENSIBLE = 1, 0xFFFE
_SAMPLE_BYTES = 2
# Decibels over one step of a 16-bit sample. Rooms at rest lie between 20 and 45, voices between 50 and 75.
_SILENCE_DB = 25.0
_LEAST_CONTRAST_DB = 6.0
# The level of speech is one that it reaches for 0.3 s in all: clicks are shorter, and one word is enough.
_LOUD_FRAMES = 30
_QUIET_SHARE = 0.1
_SHORTEST_FRAMES = 3


@dataclass(frozen=True, slots=True, eq=False)
class Sound:
    """One channel of sound. samples: (n,) int16. rate_hz: samples a second."""

    samples: NDArray[np.int16]
    rate_hz: int

    @property
    def duration_s(self) -> float:
        return len(self.samples) / self.rate_hz

    def resampled(self, rate_hz: int) -> Sound:
        """The same sound at another rate, low-passed as needed."""
        if rate_hz == self.rate_hz or not len(self.samples):
            return Sound(self.samples, rate_hz)
        from scipy.signal import resample_poly

        common = gcd(rate_hz, self.rate_hz)
        wave = resample_poly(self.samples.astype(np.float32), rate_hz // common, self.rate_hz // common)
        return Sound(np.clip(np.rint(wave), -(2**15), 2**15 - 1).astype(np.int16), rate_hz)

    def speech_frames(self, share: float = 0.25, margin_s: float = 0.1) -> NDArray[np.bool_]:
        """(n,) for every whole frame of 10 ms, whether it belongs to speech. InvalidValue if nothing stands out.

        share: what is louder than this part of the way from quiet to loud is speech, if it lasts 30 ms. margin_s: what
        belongs to it on either side, for the weak sounds at the beginning and end of words.
        """
        step = self.rate_hz // FRAMES_PER_S
        frames = self.samples[: len(self.samples) // step * step].astype(np.float64).reshape(-1, step)
        if len(frames) < _LOUD_FRAMES:
            raise InvalidValue("the recording", f"lasts {self.duration_s:.2f} s, too short to hold speech")
        level_db = 10 * np.log10((frames**2).mean(axis=1) + 1)
        quiet_db = float(np.quantile(level_db, _QUIET_SHARE))
        loud_db = float(np.partition(level_db, -_LOUD_FRAMES)[-_LOUD_FRAMES])
        if loud_db < _SILENCE_DB:
            raise InvalidValue("the recording", "is silent", "check that the microphone is on and not muted")
        if loud_db - quiet_db < _LEAST_CONTRAST_DB:
            raise InvalidValue("the recording", "is an even noise in which no speech stands out")
        return _lasting(level_db > quiet_db + share * (loud_db - quiet_db), round(margin_s * FRAMES_PER_S))


def _lasting(loud: NDArray[np.bool_], margin: int) -> NDArray[np.bool_]:
    from scipy.ndimage import binary_dilation, binary_opening

    spoken = binary_opening(loud, np.ones(_SHORTEST_FRAMES, dtype=bool))
    wide: NDArray[np.bool_] = binary_dilation(spoken, np.ones(2 * margin + 1, dtype=bool))
    return wide


def read_wav(source: Path | bytes) -> Sound:
    """A WAV file of 16-bit PCM, or its bytes. Two channels become their mean. InvalidValue if it is anything else.

    Nothing in the header is trusted: sizes are checked against the bytes that are there, rate and length are bounded.
    """
    data = source if isinstance(source, bytes) else _bytes(source)
    if len(data) > LARGEST_BYTES:
        raise InvalidValue("the recording", f"has {len(data):,} bytes; at most {LARGEST_BYTES:,} are read")
    chunks = _chunks(data)
    if "fmt " not in chunks or "data" not in chunks:
        raise InvalidValue("the recording", "has no format or no samples", "it must be a WAV file of 16-bit PCM")
    channels, rate_hz = _format(chunks["fmt "])
    samples = np.frombuffer(chunks["data"], dtype="<i2").astype(np.int16)
    if len(samples) > LONGEST_S * rate_hz * channels:
        raise InvalidValue("the recording", f"lasts longer than {LONGEST_S:g} s")
    if channels == 2:
        samples = samples.astype(np.int32).reshape(-1, 2).mean(axis=1).astype(np.int16)
    return Sound(samples, rate_hz)


def write_wav(sound: Sound) -> bytes:
    """The bytes of a WAV file of 16-bit PCM with one channel."""
    data = sound.samples.astype("<i2").tobytes()
    form = struct.pack("<HHIIHH", _PCM, 1, sound.rate_hz, sound.rate_hz * _SAMPLE_BYTES, _SAMPLE_BYTES, 16)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise InvalidFile(path, f"cannot be read: {error.strerror or error}") from error


def _chunks(data: bytes) -> dict[str, bytes]:
    """The first chunk of each name. A chunk that reaches past the end of the file was cut off on the way."""
    if len(data) < 12 or data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise InvalidValue("the recording", "is not a WAV file", "it must be a WAV file of 16-bit PCM")
    chunks: dict[str, bytes] = {}
    position = 12
    while position + 8 <= len(data):
        name = data[position : position + 4].decode("latin-1")
        (size,) = struct.unpack_from("<I", data, position + 4)
        begin = position + 8
        if begin + size > len(data):
            raise InvalidValue("the recording", f"is cut off: {begin + size - len(data):,} bytes are missing")
        chunks.setdefault(name, data[begin : begin + size])
        position = begin + size + size % 2
    return chunks


def _format(chunk: bytes) -> tuple[int, int]:
    """Channels and rate, checked."""
    if len(chunk) < 16:
        raise InvalidValue("the recording", "has a format that is cut off")
    kind, channels, rate_hz, _, block, bits = struct.unpack_from("<HHIIHH", chunk)
    if kind == _EXTENSIBLE and len(chunk) >= 26:
        (kind,) = struct.unpack_from("<H", chunk, 24)
    if kind != _PCM or bits != 8 * _SAMPLE_BYTES:
        raise InvalidValue("the recording", f"is of kind {kind} with {bits} bits, not PCM with 16 bits")
    if channels not in (1, 2) or block != channels * _SAMPLE_BYTES:
        raise InvalidValue("the recording", f"has {channels} channels in blocks of {block} bytes; one channel is best")
    if not RATES_HZ[0] <= rate_hz <= RATES_HZ[1]:
        raise InvalidValue("the recording", f"has {rate_hz} samples a second, not {RATES_HZ[0]} to {RATES_HZ[1]}")
    return channels, rate_hz
