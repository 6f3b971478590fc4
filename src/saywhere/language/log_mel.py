"""Whisper's features of sound: how loud each of 80 mel bands is, every 10 ms, on a logarithmic scale."""

from __future__ import annotations

from functools import cache

import numpy as np

from saywhere.core.types import Floats, Floats32

RATE_HZ = 16_000
WINDOW_S = 30
BANDS = 80
_FFT, _HOP = 400, 160
# Slaney's mel scale: linear up to 1 kHz, logarithmic above.
_LINEAR_HZ, _KNEE_HZ, _STEP = 200 / 3, 1_000.0, np.log(6.4) / 27
# Quieter than this below the loudest is not told apart, in powers of ten.
_RANGE = 8.0


def log_mel(samples: Floats32) -> Floats32:
    """(80, 3000) for up to 30 s of samples at 16 kHz between −1 and 1; silence fills what is missing.

    >>> log_mel(np.zeros(16_000, dtype=np.float32)).shape
    (80, 3000)
    """
    n = WINDOW_S * RATE_HZ
    wave = np.zeros(n, dtype=np.float64)
    wave[: min(n, len(samples))] = samples[:n]
    padded = np.pad(wave, _FFT // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, _FFT)[::_HOP][:-1]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_FFT) / _FFT)
    power = np.abs(np.fft.rfft(frames * hann, axis=1)) ** 2
    loud = np.log10(np.maximum(_filters() @ power.T, 1e-10))
    scaled: Floats32 = ((np.maximum(loud, loud.max() - _RANGE) + 4) / 4).astype(np.float32)
    return scaled


@cache
def _filters() -> Floats:
    """(bands, bins): triangles of equal area, evenly spaced on the mel scale."""
    knee = _KNEE_HZ / _LINEAR_HZ
    mels = np.linspace(0, knee + np.log(RATE_HZ / 2 / _KNEE_HZ) / _STEP, BANDS + 2)
    edges_hz = np.where(mels < knee, mels * _LINEAR_HZ, _KNEE_HZ * np.exp(_STEP * (mels - knee)))
    bins_hz = np.fft.rfftfreq(_FFT, 1 / RATE_HZ)
    low, middle, high = (edges_hz[i : i + BANDS, None] for i in range(3))
    rising, falling = (bins_hz - low) / (middle - low), (high - bins_hz) / (high - middle)
    filters: Floats = np.maximum(0, np.minimum(rising, falling)) * 2 / (high - low)
    return filters
