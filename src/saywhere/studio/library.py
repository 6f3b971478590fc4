"""The photos one can search: those on the shelf, or a folder's; looked at in the background, a photo at a time."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saywhere.atomic import write_atomic
from saywhere.core.errors import SaywhereError, UnknownName
from saywhere.core.narrative import HUMAN
from saywhere.core.types import Floats32
from saywhere.studio.errors import Refused, log, too_large
from saywhere.studio.exports import export
from saywhere.studio.looks import LookService, Worker
from saywhere.studio.narratives import NarrativeStore
from saywhere.studio.photos import PhotoStore, clean_photo
from saywhere.studio.settings import Limits

if TYPE_CHECKING:
    from PIL import Image

    from saywhere.index import Hit, Query
    from saywhere.models.patchioner.eyes import Eyes
    from saywhere.models.patchioner.look import SeerLook
    from saywhere.models.patchioner.seer import Seer

_PACKAGES = ("lancedb", "filelock")
_THUMBNAIL = 320
"""Pixels of its longer side."""
_HOW = "pip install 'saywhere[search]'"


@dataclass(frozen=True, slots=True)
class LibraryState:
    """How far the photos are looked at. doing: what is done now, `done` of `total`; empty while nothing is. error: why
    the last time ended early. photos, failed, regions, said: what is there to be searched."""

    doing: str = ""
    done: int = 0
    total: int = 0
    error: str = ""
    photos: int = 0
    failed: int = 0
    regions: int = 0
    said: int = 0


class _Closed(Exception):
    """The Studio ends: what was looked at is kept."""


class PhotoLibrary:
    """What the Studio can search.

    folder: of photos, with or without an index; None for the shelf, whose index and spoken words are kept in `home`.
    A folder is brought up to date when the Studio opens. The shelf is looked at when somebody first wants to search,
    and from then on whenever it changes.
    """

    def __init__(
        self,
        folder: Path | None,
        home: Path,
        looks: LookService,
        photos: PhotoStore,
        narratives: NarrativeStore,
    ) -> None:
        self.folder, self._looks, self._photos, self._narratives = folder, looks, photos, narratives
        self.root = photos.folder if folder is None else folder
        self._tables = home / "tables" if folder is None else None
        self._said = home / "said"
        self._worker = Worker("library", 1)
        self._lock = threading.Lock()
        # wanted: somebody searches here. running: it is brought up to date; again: something changed meanwhile.
        self._wanted, self._running, self._again, self._closed = folder is not None, False, False, False
        self.state = LibraryState()

    def open(self) -> None:
        """Begin with a folder; the shelf waits until it is asked for."""
        if self._wanted:
            self.refresh()

    def close(self) -> None:
        self._closed = True
        self._worker.close()

    def facts(self) -> dict[str, Any]:
        """Whether photos can be searched, and if not, why and how to get it; what is searched, and how far it is."""
        why, how = self._lack()
        name = "" if self.folder is None else self.folder.resolve().name
        return {"has": not why, "why": why, "how": how, "folder": name, **asdict(self.state)}

    def check(self) -> None:
        """Refused if photos cannot be searched."""
        why, how = self._lack()
        if why:
            raise Refused(409, "no_search", why, how)

    def refresh(self) -> None:
        """Look at what is new, and forget what is gone, in the background; once more if that is under way."""
        with self._lock:
            self._wanted = True
            if self._closed:
                return
            if self._running:
                self._again = True
                return
            self._running = True
            self.state = replace(self.state, doing="waiting for the model", done=0, total=0, error="")
            self._worker.begin(self._update)

    def changed(self) -> None:
        """A photo or a narrative came, went or changed."""
        if self.folder is None and self._wanted:
            self.refresh()

    def find(self, query: Query, limit: int) -> list[Hit]:
        """The best of all photos that are there."""
        from saywhere.index import Library, search

        if not self._begun():
            return []
        hits = search(Library(self.root, self._tables), query, limit)
        return [hit for hit in hits if hit.photo and (self.folder is not None or self.on_shelf(hit) is not None)]

    def on_shelf(self, hit: Hit) -> str | None:
        """The id of a photo that was found, if it is on the shelf."""
        number = Path(hit.photo).stem
        return number if self.folder is None and number in self._photos else None

    def path(self, name: str) -> Path:
        """A photo of the folder that is in the index, by its name there. UnknownName for anything else."""
        from saywhere.index import Library

        if self.folder is None or not self._begun() or not Library(self.root, self._tables).has(name):
            raise UnknownName("photo", name, ())
        return self.root / name

    def _begun(self) -> bool:
        from saywhere.index.library import is_library, tables_place

        return is_library(tables_place(self.root, self._tables))

    def _lack(self) -> tuple[str, str]:
        """Why photos cannot be searched, and what to do; empty if they can."""
        if any(find_spec(package) is None for package in _PACKAGES):
            return "To search photos, packages are missing.", _HOW
        model = self._looks.model
        if model is None:
            return self._looks.failure or "The model is loading.", ""
        from saywhere.index.seen import NoTextVectors, checked_seeing

        try:
            checked_seeing(model)
        except NoTextVectors as error:
            return str(error), ""
        return "", ""

    def _update(self) -> None:
        again = True
        while again:
            error = self._why_not_updated()
            with self._lock:
                again = self._running = self._again and not self._closed
                self._again = False
                self.state = replace(self.state, doing=self.state.doing if again else "", error=error)

    def _why_not_updated(self) -> str:
        """Bring it up to date; why that ended early, if it did."""
        try:
            self._update_once()
        except _Closed:
            return ""
        except (SaywhereError, Refused) as error:
            return getattr(error, "message", str(error))
        except Exception as error:  # noqa: BLE001 - nobody waits for it: the page is told, and the log says where
            log.error("the library could not be brought up to date", exc_info=error)
            return f"something went wrong ({type(error).__name__}; the log says more)"
        return ""

    def _update_once(self) -> None:
        from saywhere.index import Library, update
        from saywhere.index.seen import checked_seeing

        seer = self._looks.begin(checked_seeing).result()
        self.root.mkdir(parents=True, exist_ok=True)
        said = self._write_said() if self.folder is None else ()
        update(
            self.root,
            _InTurn(seer, self._looks, self._looked),
            folder=self._tables,
            narratives=said,
            progress=self._tell,
        )
        counts: dict[str, Any] = Library(self.root, self._tables).counts
        self.state = replace(self.state, **counts)

    def _tell(self, doing: str, done: int, total: int) -> None:
        if self._closed:
            raise _Closed
        self.state = replace(self.state, doing=doing, done=done, total=total)

    def _looked(self) -> None:
        """One photo more: they are kept, and told of, some at a time."""
        self._tell(self.state.doing, min(self.state.done + 1, self.state.total), self.state.total)

    def _write_said(self) -> list[Path]:
        """What people told about the photos of the shelf, a file for each narrative, as the index reads it."""
        wanted: dict[Path, bytes] = {}
        for record in self._narratives.list():
            if record["origin"] == HUMAN and record["text"].strip():
                # Without a name, the image is called by the photo's id, as its file is.
                nameless = {"id": record["photo"], "name": ""}
                path = self._said / f"{record['id']}.jsonl"
                wanted[path] = export(record, nameless, "localized_narratives").data
        for path in self._said.glob("*.jsonl"):
            if path not in wanted:
                path.unlink()
        for path, content in wanted.items():
            if not path.exists() or path.read_bytes() != content:
                with write_atomic(path) as file:
                    file.write(content)
        return list(wanted)


@dataclass(frozen=True, slots=True)
class _InTurn:
    """The Studio's model for work in the background: it does one thing at a time in the model's own thread, so that
    those who ask wait for one photo, not for all. looked: called after each."""

    seer: Seer
    looks: LookService
    looked: Callable[[], None]

    @property
    def name(self) -> str:
        return self.seer.name

    @property
    def eyes(self) -> Eyes:
        return self.seer.eyes

    def look(self, photo: Image.Image, image_id: str) -> SeerLook:
        look: SeerLook = self._do(lambda: self.seer.look(photo, image_id))
        self.looked()
        return look

    def texts(self, texts: Sequence[str]) -> Floats32:
        vectors: Floats32 = self._do(lambda: self.seer.texts(texts))
        return vectors

    def _do(self, task: Callable[[], Any]) -> Any:
        return self.looks.begin(lambda _: task()).result()


def thumbnail(path: Path, limits: Limits) -> bytes:
    """A photo of a folder as a small JPEG, without metadata. Refused or InvalidValue if it is none that is taken."""
    if path.stat().st_size > limits.photo_bytes:
        raise too_large("the photo", path.stat().st_size, limits.photo_bytes, " bytes")
    image = clean_photo(path.read_bytes(), limits).image
    image.thumbnail((_THUMBNAIL, _THUMBNAIL))
    written = io.BytesIO()
    image.save(written, "JPEG", quality=85)
    return written.getvalue()
