"""Photos: what is taken, what becomes of it, and what is refused."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image, ImageCms, PngImagePlugin

from saywhere.core.errors import InvalidFile, UnknownName
from saywhere.studio.photos import THUMBNAIL_PX, PhotoStore, import_folder, plain_name
from saywhere.studio.settings import Limits
from tests.studio.conftest import (
    HEIC,
    encoded,
    narrative,
    picture,
    png,
    refusal,
    upload,
)


def test_a_photo_comes_back_as_it_was_and_is_named_by_its_content(client: TestClient) -> None:
    photo = upload(client, png(40, 30), "my%20kitchen.png")
    assert (photo["width"], photo["height"], photo["name"]) == (40, 30, "my kitchen.png")
    assert client.get("/api/photos").json() == {"photos": [photo]}
    assert client.get(f"/api/photos/{photo['id']}").json() == photo
    file = client.get(photo["url"])
    assert file.headers["content-type"] == "image/png"
    assert "immutable" in file.headers["cache-control"]
    seen = Image.open(io.BytesIO(file.content))
    assert seen.tobytes() == picture(40, 30).tobytes()


def test_the_same_photo_is_kept_once(client: TestClient) -> None:
    first, again = upload(client, png(), "a.png"), upload(client, png(), "b.png")
    assert again == first
    assert len(client.get("/api/photos").json()["photos"]) == 1


def test_a_deleted_photo_is_gone(client: TestClient, photo: dict[str, Any], tmp_path: Path) -> None:
    assert client.delete(f"/api/photos/{photo['id']}").status_code == 204
    assert refusal(client.get(photo["url"]), 404)["code"] == "unknown_photo"
    assert list((tmp_path / "studio" / "photos").iterdir()) == []


def test_a_photo_with_narratives_goes_only_with_them(client: TestClient, photo: dict[str, Any]) -> None:
    client.post("/api/narratives", json=narrative(photo["id"]))
    address = f"/api/photos/{photo['id']}"
    assert refusal(client.delete(address), 409)["code"] == "has_narratives"
    assert client.delete(address, params={"with_narratives": True}).status_code == 204
    assert client.get("/api/narratives").json() == {"narratives": []}


def test_photos_are_there_again_after_a_restart(open_studio: Callable[..., TestClient]) -> None:
    photo = upload(open_studio(), png())
    assert open_studio().get("/api/photos").json() == {"photos": [photo]}


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_what_a_camera_wrote_into_a_photo_is_gone_but_it_stands_upright(client: TestClient, kind: str) -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "SECRET PLACE"
    how: dict[str, Any] = {
        "exif": exif,
        "icc_profile": ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes(),
    }
    if kind == "PNG":
        how["pnginfo"] = PngImagePlugin.PngInfo()
        how["pnginfo"].add_text("Comment", "SECRET PLACE")
    if kind == "JPEG":
        how["comment"] = "SECRET PLACE"
    photo = upload(client, encoded(picture(40, 20), kind, **how))
    data = client.get(photo["url"]).content
    seen = Image.open(io.BytesIO(data))
    assert (photo["width"], photo["height"]) == seen.size == (20, 40)
    assert b"SECRET" not in data
    assert not {"exif", "icc_profile", "comment", "Comment", "xmp"} & set(seen.info)
    red, blue = seen.convert("RGB").getpixel((10, 5)), seen.convert("RGB").getpixel((10, 35))
    assert np.abs(np.subtract([red, blue], [(200, 30, 30), (30, 30, 200)])).max() < 25


def test_transparent_parts_become_white(client: TestClient) -> None:
    photo = upload(client, encoded(Image.new("RGBA", (8, 8), (9, 9, 9, 0))))
    assert Image.open(io.BytesIO(client.get(photo["url"]).content)).getpixel((4, 4)) == (255, 255, 255)


def _moving(kind: str) -> bytes:
    return encoded(picture(), kind, save_all=True, append_images=[picture(32, 24).rotate(180)], duration=100)


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"", 415, "not_a_photo"),
        (b"GIF89a" + bytes(20), 415, "not_a_photo"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", 415, "not_a_photo"),
        (encoded(picture(), "BMP"), 415, "not_a_photo"),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), 422, "invalid_value"),
        (png()[:60], 422, "invalid_value"),
        (b"\xff\xd8\xff\xe0" + bytes(50), 422, "invalid_value"),
        (b"RIFF\x10\x00\x00\x00WEBPVP8 " + bytes(20), 422, "invalid_value"),
        (_moving("PNG"), 422, "invalid_value"),
        (_moving("WEBP"), 422, "invalid_value"),
    ],
)
def test_what_is_no_photo_is_refused_with_a_reason(client: TestClient, data: bytes, status: int, code: str) -> None:
    reply = client.post("/api/photos", content=data, headers={"Content-Type": "image/png"})
    assert refusal(reply, status)["code"] == code
    assert client.get("/api/photos").json() == {"photos": []}


def test_a_phones_heic_gets_a_sentence_that_helps(client: TestClient) -> None:
    reply = client.post("/api/photos", content=HEIC, headers={"Content-Type": "image/heic"})
    said = refusal(reply, 415)
    assert said["message"] == "the file is HEIC, as phones take photos; it is not read here"
    assert said["hint"].startswith("save it as JPEG: on an iPhone")


def test_a_photo_larger_than_the_limits_is_refused_with_413(open_studio: Callable[..., TestClient]) -> None:
    client = open_studio(Limits(photo_bytes=2_000, photo_pixels=1_000))
    headers = {"Content-Type": "image/png"}
    assert "bytes" in refusal(client.post("/api/photos", content=bytes(2_001), headers=headers), 413)["message"]
    assert "pixels" in refusal(client.post("/api/photos", content=png(40, 30), headers=headers), 413)["message"]
    assert client.post("/api/photos", content=png(30, 30), headers=headers).status_code == 201


def test_a_small_file_of_very_many_pixels_is_refused_before_it_is_decoded(client: TestClient) -> None:
    bomb = encoded(Image.new("1", (10_000, 5_000)))
    assert len(bomb) < 100_000
    assert refusal(client.post("/api/photos", content=bomb, headers={"Content-Type": "image/png"}), 413)


def test_a_full_store_takes_no_more(open_studio: Callable[..., TestClient]) -> None:
    client = open_studio(Limits(photos=1))
    upload(client, png(8, 8))
    again = client.post("/api/photos", content=png(9, 9), headers={"Content-Type": "image/png"})
    assert refusal(again, 409)["code"] == "store_full"


@pytest.mark.parametrize(
    ("given_name", "kept"),
    [("a.png", "a.png"), ("../../etc/passwd", "passwd"), ("C:\\x\\y.jpg", "y.jpg"), ("", "photo"), ("a\x00\nb", "ab")],
)
def test_names_are_for_reading_only(given_name: str, kept: str) -> None:
    assert plain_name(given_name) == kept


def test_a_folder_is_taken_and_its_files_stay_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.PNG").write_bytes(png(8, 8))
    (folder / "deep" / "b.jpg").write_bytes(encoded(picture(), "JPEG"))
    (folder / "broken.png").write_bytes(b"no")
    (folder / "notes.txt").write_text("hello")
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    store = PhotoStore(tmp_path / "store", Limits())
    taken = list(import_folder(store, folder))
    assert [one.name if not isinstance(one, InvalidFile) else "bad" for one in taken] == ["a.PNG", "bad", "b.jpg"]
    assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before
    assert [info.id for info in PhotoStore(tmp_path / "store", Limits()).list()] == [info.id for info in store.list()]
    with pytest.raises(InvalidFile, match="not a folder"):
        list(import_folder(store, tmp_path / "nowhere"))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_a_thumbnail_is_made_once_and_goes_with_its_photo(tmp_path: Path, kind: str) -> None:
    store = PhotoStore(tmp_path, Limits())
    info = store.add(encoded(picture(1_200, 800), kind), "a")
    path = store.thumbnail(info.id)
    made = path.stat().st_mtime_ns
    with Image.open(path) as small:
        assert (small.format, max(small.size)) == ("JPEG", THUMBNAIL_PX)
        assert small.size[0] / small.size[1] == pytest.approx(1.5, abs=0.02)
        red, blue = small.getpixel((20, 70)), small.getpixel((200, 70))
    assert red == pytest.approx((200, 30, 30), abs=12)
    assert blue == pytest.approx((30, 30, 200), abs=12)
    assert path.stat().st_size < 20_000
    assert store.thumbnail(info.id) == path
    assert path.stat().st_mtime_ns == made
    assert len(PhotoStore(tmp_path, Limits())) == 1
    store.delete(info.id)
    assert list((tmp_path / ".thumbnails").iterdir()) == []
    with pytest.raises(UnknownName):
        store.thumbnail(info.id)


def test_the_api_gives_thumbnails(client: TestClient, photo: dict[str, Any]) -> None:
    reply = client.get(photo["thumbnail"])
    assert (reply.status_code, reply.headers["content-type"]) == (200, "image/jpeg")
    assert "immutable" in reply.headers["cache-control"]
    refusal(client.get(f"/api/photos/{'f' * 32}/thumbnail"), 404)
