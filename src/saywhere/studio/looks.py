"""One model, one thread that uses it, and the looks it has made lately."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from saywhere.core.errors import SaywhereError
from saywhere.studio.conversations import Conversations, Told, UserTurn
from saywhere.studio.errors import Refused, busy, log
from saywhere.studio.settings import Limits
from saywhere.studio.skills import skill_values

if TYPE_CHECKING:
    from saywhere.models.face import Look, Model
    from saywhere.vision import PhotoLike

T = TypeVar("T")


class Worker:
    """One thread that does one thing after another. waiting: how many may stand in line or be under way."""

    def __init__(self, name: str, waiting: int) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=f"studio-{name}")
        self._places = threading.BoundedSemaphore(waiting)
        self._name = name

    async def do(self, task: Callable[[], T]) -> T:
        """Stand in line; 429 if the line is full. One who leaves the line before the turn is not served."""
        if not self._places.acquire(blocking=False):
            raise busy(f"too many requests wait for the {self._name}")
        future = self._pool.submit(task)
        future.add_done_callback(lambda _: self._places.release())
        return await asyncio.wrap_future(future)

    def begin(self, task: Callable[[], T]) -> Future[T]:
        """Something that takes no place in the line: loading, or one step of a job."""
        return self._pool.submit(task)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


class _NobodyListens(Exception):
    """The client left while it was told."""


class LookCache:
    """The looks used last, bounded in number and in bytes. Used by the model's thread alone."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self.most, self.most_bytes, self.bytes = most, most_bytes, 0
        self._looks: OrderedDict[str, tuple[Look, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._looks)

    def get(self, key: str) -> Look | None:
        if key not in self._looks:
            return None
        self._looks.move_to_end(key)
        return self._looks[key][0]

    def put(self, key: str, look: Look) -> None:
        self.drop(key)
        # The patches as they were seen, as they were aligned, and one by one for finding texts.
        size = 3 * look.view.patches.nbytes
        self._looks[key] = (look, size)
        self.bytes += size
        while len(self._looks) > 1 and (len(self._looks) > self.most or self.bytes > self.most_bytes):
            self.drop(next(iter(self._looks)))

    def drop(self, key: str) -> None:
        if key in self._looks:
            self.bytes -= self._looks.pop(key)[1]


@dataclass(frozen=True, slots=True)
class LookReport:
    """grid: rows and columns of patches. seconds: it took. cached: whether it was there already."""

    grid: tuple[int, int]
    seconds: float
    cached: bool


class LookService:
    """The model and everything it has seen lately. All of its work is done in one thread.

    name: of the model to load, or of the one given. load: gives it; called in that thread when `open` is.
    """

    def __init__(self, name: str, load: Callable[[], Model], limits: Limits) -> None:
        self.name, self._load, self._limits = name, load, limits
        self._worker = Worker("model", limits.queue)
        self._cache = LookCache(limits.looks, limits.look_bytes)
        self._conversations = Conversations(limits.conversations)
        self._model: Future[Model] | None = None

    def open(self) -> None:
        """Begin to load the model."""
        self._model = self._worker.begin(self._loaded)

    def close(self) -> None:
        self._worker.close()

    @property
    def model(self) -> Model | None:
        """The model, if it is loaded."""
        if self._model is None or not self._model.done() or self._model.cancelled() or self._model.exception():
            return None
        return self._model.result()

    @property
    def failure(self) -> str:
        """Why there is no model; empty if it is there or still loads."""
        if self._model is None or not self._model.done():
            return ""
        error = None if self._model.cancelled() else self._model.exception()
        if isinstance(error, SaywhereError):
            return str(error)
        return "" if error is None else f"it could not be loaded ({type(error).__name__}; the log says more)"

    async def skills(self) -> tuple[str, ...]:
        """What the model can do, once it is there."""
        return await self.use(lambda model: model.skills)

    async def use(self, task: Callable[[Model], T]) -> T:
        """Something for the model itself, in turn with all others; 429 if the line is full."""
        return await self._answer(lambda: task(self._loaded_model()))

    def begin(self, task: Callable[[Model], T]) -> Future[T]:
        """The same for work in the background: it waits its turn however long the line is, and takes nobody's place."""
        return self._worker.begin(lambda: task(self._loaded_model()))

    async def look(self, key: str, read: Callable[[], PhotoLike]) -> LookReport:
        """Look at a photo, if that was not done lately."""

        def looked() -> LookReport:
            began, known = time.perf_counter(), self._cache.get(key)
            look = known or self._look(key, read)
            return LookReport(look.view.frame.grid, time.perf_counter() - began, known is not None)

        return await self._answer(looked)

    async def ask(self, skill: str, key: str, read: Callable[[], PhotoLike], question: Callable[[Look], T]) -> T:
        """Ask something that takes a skill about a photo, which is looked at first if that was not done lately.

        key: the same for the same photo. read: gives the photo.
        """

        def answered() -> T:
            self._check_skill(skill)
            return question(self._cache.get(key) or self._look(key, read))

        return await self._answer(answered)

    async def say(self, key: str, read: Callable[[], PhotoLike], turns: Sequence[UserTurn]) -> Told:
        """What the model says to the last turn of a conversation about a photo."""
        return await self.ask("chat", key, read, lambda look: self._conversations.say(key, look, turns))

    async def stream(
        self, key: str, read: Callable[[], PhotoLike], turns: Sequence[UserTurn]
    ) -> AsyncIterator[str | Told]:
        """The same piece by piece, then the whole. One who stops listening stops the model."""
        loop, gone = asyncio.get_running_loop(), threading.Event()
        pieces: asyncio.Queue[str | None] = asyncio.Queue()

        def hear(text: str) -> None:
            if gone.is_set():
                raise _NobodyListens
            loop.call_soon_threadsafe(pieces.put_nowait, text)

        telling = asyncio.ensure_future(
            self.ask("chat", key, read, lambda look: self._conversations.say(key, look, turns, hear))
        )
        telling.add_done_callback(lambda _: pieces.put_nowait(None))
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            yield await telling
        finally:
            gone.set()
            telling.cancel()

    async def look_in_turn(self, key: str, read: Callable[[], PhotoLike]) -> None:
        """Look for a job."""
        await asyncio.wrap_future(self.begin(lambda _: self._cache.get(key) or self._look(key, read)))

    def forget(self, key: str) -> None:
        """Drop what was seen of a photo, and what was said about it."""
        self._worker.begin(lambda: self._cache.drop(key))
        self._worker.begin(lambda: self._conversations.drop(key))

    async def _answer(self, task: Callable[[], T]) -> T:
        if self.failure:
            raise self._no_model()
        if self.model is not None:
            return await self._worker.do(task)
        try:
            return await asyncio.wait_for(self._worker.do(task), self._limits.load_wait_s)
        except TimeoutError as error:
            wait = {"Retry-After": "5"}
            raise Refused(503, "model_loading", f"the model {self.name} is still loading", "try again", wait) from error

    def _check_skill(self, skill: str) -> None:
        model = self.model
        facts = skill_values(self.name, None if model is None else model.skills, self.failure)[skill]
        if model is not None and not facts["has"]:
            raise Refused(409, "no_skill", str(facts["why"]), str(facts["how"]))

    def _look(self, key: str, read: Callable[[], PhotoLike]) -> Look:
        model = self._loaded_model()
        # A look is small, a photo of 40 million pixels is not.
        look = model.look(read(), key).without_photo()
        self._cache.put(key, look)
        return look

    def _loaded_model(self) -> Model:
        if self.model is None:
            raise self._no_model()
        return self.model

    def _no_model(self) -> Refused:
        return Refused(503, "no_model", f"the model {self.name} is not there: {self.failure or 'it was not opened'}")

    def _loaded(self) -> Model:
        began = time.perf_counter()
        model = self._load()
        self.name = model.name
        log.info("%s is ready after %.1f s", model.name, time.perf_counter() - began)
        return model
