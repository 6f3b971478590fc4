"""Whisper: writes down what is said, in one of 99 languages. 8-bit ONNX weights, greedy decoding, offline.

Whisper makes up sentences for silence and sometimes goes round in circles. Against that stand:

* Long pauses are shortened before. Sound is cut into windows of at most 30 s where it is quietest, so that no word is.
* A window in which the model hears no speech and is unsure of its words gives none.
* What repeats itself or is unsure is written anew with more and more chance in the choice of words, as its authors do.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from saywhere.assets import verify
from saywhere.core.errors import InvalidValue, require
from saywhere.core.types import Floats32, Ints, Progress
from saywhere.language.log_mel import RATE_HZ, WINDOW_S, log_mel
from saywhere.language.sound import FRAMES_PER_S, Sound
from saywhere.language.transcript import Transcript

WHISPER = ("whisper-base", "whisper-tiny")
"""The assets, the better one first."""
# Nobody speaks faster; a model that goes round in circles does.
_TOKENS_PER_S, _LEAST_TOKENS, _MOST_TOKENS = 8, 16, 224
# The authors' own: no speech if the model says so and is unsure of what it wrote (mean log-probability); a text that
# shrinks more than this when it is compressed repeats itself; the temperatures to be tried then.
_NO_SPEECH, _UNSURE, _REPETITIVE = 0.6, -1.0, 2.4
_TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
# So much of a pause is kept on either side.
_PAUSE_S = 0.5
# Where to cut: the quietest moment of the last part of a window.
_LAST_S, _MOMENT_S = 10, 0.3


class Whisper:
    """A loaded model. Its files are checked; nothing is fetched: `saywhere assets fetch whisper-base` does that.

    threads: of the processor. One thread may use it at a time.
    """

    def __init__(self, name: str = WHISPER[0], threads: int = 1) -> None:
        runtime = require("onnxruntime", needed_for="writing down what is said", extra="transcribe")
        tokenizers = require("tokenizers", needed_for="writing down what is said", extra="transcribe")
        folder = verify(name)
        self.name = name
        self._encoder = _session(runtime, folder / "encoder.onnx", threads)
        self._decoder = _session(runtime, folder / "decoder.onnx", threads)
        self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        config = json.loads((folder / "generation_config.json").read_text("utf-8"))
        self._start, self._end = config["decoder_start_token_id"], config["eos_token_id"]
        self._task, self._no_times = config["task_to_id"]["transcribe"], config["no_timestamps_token_id"]
        self._no_speech = self._tokenizer.token_to_id("<|nocaptions|>")
        self._languages = {code[2:-2]: token for code, token in config["lang_to_id"].items()}
        # Signs that are no speech, and every token of times, which come after the one that says there are none.
        self._never = np.array([*config["suppress_tokens"], self._no_times])
        self._never_first = np.array(config["begin_suppress_tokens"])
        self._empty = {one.name: (one.shape[1], one.shape[3]) for one in self._decoder.get_inputs()[2:-1]}
        self._outputs = [one.name for one in self._decoder.get_outputs() if one.name.startswith(("logits", "present"))]

    @property
    def languages(self) -> Sequence[str]:
        return sorted(self._languages)

    def transcribe(self, sound: Sound, language: str | None, progress: Progress) -> Transcript:
        """What is said. language: its code, or None to find out from the first window.

        progress: told how many seconds are done, and between words; what it raises stops the work.
        InvalidValue if the recording is silent or the language is not known.
        """
        if language is not None and language not in self._languages:
            raise InvalidValue("the language", f"{language!r} is not known", f"one of {', '.join(self.languages)}")
        samples = _without_pauses(sound.resampled(RATE_HZ))
        total_s, done = round(len(samples) / RATE_HZ), 0
        texts = []
        for window in _windows(samples):

            def tell(doing: str, said_s: int = round(done / RATE_HZ)) -> None:
                progress(doing, said_s, total_s)

            tell("listening")
            hidden = self._encoder.run(["last_hidden_state"], {"input_features": log_mel(window)[None]})[0]
            first = _softmax(self._step(np.array([self._start]), hidden, None)[0])
            language = language or max(self._languages, key=lambda code: first[self._languages[code]])
            text, sureness = self._written(hidden, language, len(window), lambda: tell("writing"))
            if first[self._no_speech] <= _NO_SPEECH or sureness >= _UNSURE:
                texts.append(text)
            done += len(window)
        progress("writing", total_s, total_s)
        return Transcript(" ".join(text for text in texts if text), language or "en")

    def _written(self, hidden: Floats32, language: str, n_samples: int, tell: Callable[[], None]) -> tuple[str, float]:
        """What is said in a window, and how sure that is."""
        chance = np.random.default_rng(0)
        for temperature in _TEMPERATURES:
            tokens, sureness = self._decode(hidden, language, n_samples, temperature, chance, tell)
            text = self._tokenizer.decode(tokens, skip_special_tokens=True).strip()
            if sureness >= _UNSURE and _repetition(text) <= _REPETITIVE:
                break
        return text, sureness

    def _decode(
        self,
        hidden: Floats32,
        language: str,
        n_samples: int,
        temperature: float,
        chance: np.random.Generator,
        tell: Callable[[], None],
    ) -> tuple[list[int], float]:
        """Token after token, the likeliest at temperature 0; and their mean log-probability."""
        most = min(_MOST_TOKENS, _LEAST_TOKENS + _TOKENS_PER_S * n_samples // RATE_HZ)
        asked = np.array([self._start, self._languages[language], self._task, self._no_times])
        tokens: list[int] = []
        scores: list[float] = []
        cache: dict[str, Floats32] | None = None
        while len(tokens) < most:
            tell()
            logits, cache = self._step(asked, hidden, cache)
            logits[self._never] = -np.inf
            logits[self._no_times + 1 :] = -np.inf
            if not tokens:
                logits[self._never_first] = -np.inf
            noise = temperature * chance.gumbel(size=len(logits)) if temperature else 0.0
            best = int((logits + noise).argmax())
            scores.append(float(np.log(_softmax(logits)[best])))
            if best == self._end:
                break
            tokens.append(best)
            asked = np.array([best])
        return tokens, float(np.mean(scores))

    def _step(
        self, tokens: Ints, hidden: Floats32, cache: dict[str, Floats32] | None
    ) -> tuple[Floats32, dict[str, Floats32]]:
        """Logits of the token after these, and the keys and values of all so far."""
        past = cache or {
            name: np.zeros((1, heads, 0, width), np.float32) for name, (heads, width) in self._empty.items()
        }
        given = {"input_ids": tokens[None].astype(np.int64), "encoder_hidden_states": hidden, **past}
        found = self._decoder.run(self._outputs, {**given, "use_cache_branch": np.array([cache is not None])})
        named = dict(zip(self._outputs, found, strict=True))
        logits = named.pop("logits")[0, -1].copy()
        present = {name.replace("present", "past_key_values"): values for name, values in named.items()}
        if cache is not None:  # What was heard does not change, and is not given again.
            present |= {name: values for name, values in cache.items() if ".encoder." in name}
        return logits, present


def _session(runtime: Any, path: Path, threads: int) -> Any:
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    options.log_severity_level = 3
    return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _without_pauses(sound: Sound) -> Floats32:
    """Samples between −1 and 1, with long pauses shortened. InvalidValue if nothing is said."""
    step = RATE_HZ // FRAMES_PER_S
    samples = (sound.samples / 2**15).astype(np.float32)
    speech = sound.speech_frames()
    near = np.convolve(speech, np.ones(2 * int(_PAUSE_S * FRAMES_PER_S) + 1), mode="same") > 0
    kept: Floats32 = samples[: len(near) * step].reshape(-1, step)[near].ravel()
    return kept


def _repetition(text: str) -> float:
    """How many times smaller a text is when it is compressed."""
    data = text.encode("utf-8")
    return len(data) / len(zlib.compress(data))


def _windows(samples: Floats32) -> list[Floats32]:
    """Pieces of at most 30 s, cut where it is quietest; together they are the whole."""
    most, moment = WINDOW_S * RATE_HZ, int(_MOMENT_S * RATE_HZ)
    pieces = []
    while len(samples) > most:
        late = samples[most - _LAST_S * RATE_HZ : most].astype(np.float64) ** 2
        loud = np.convolve(late, np.ones(moment), mode="valid")
        cut = most - _LAST_S * RATE_HZ + int(loud.argmin()) + moment // 2
        pieces.append(samples[:cut])
        samples = samples[cut:]
    return [*pieces, samples]


def _softmax(logits: Floats32) -> Floats32:
    odds = np.exp(logits - logits.max())
    share: Floats32 = odds / odds.sum()
    return share
