"""One face for every family: what was learnt is loaded by its folder, looks at photos, and says what it cannot do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from click.testing import Result
from PIL import Image
from typer.testing import CliRunner

import saywhere
from saywhere import loading
from saywhere.cli.app import app
from saywhere.core import Box, Caption, InvalidFile, InvalidValue, Point, Polygon, Trace, UnknownName, WholeImage
from saywhere.language.vocabulary import Vocabulary
from saywhere.models import registry
from saywhere.models.common.overlaps import inside
from saywhere.models.face import SKILLS, Look, MissingSkill, Model
from saywhere.models.mitr.network import MITR
from saywhere.models.mitr.prepared import PreparedNarrative, save_prepared
from saywhere.models.mitr.task import MitrTask
from saywhere.models.oscar.prepared import LevelCaption, save_level_captions
from saywhere.models.oscar.task import OscarTask
from saywhere.models.patchioner.answering import answer_size
from saywhere.models.patchioner.seer import open_with_writer, save_config
from saywhere.models.photo_regions import open_eye
from saywhere.models.prepared import REGION_FIELDS, StoredImages, region_row, tagged_regions
from saywhere.models.region_features import REGIONS, RegionFeatures, open_features
from saywhere.models.region_source import REGION_SET, RegionSource, read_source, save_source
from saywhere.models.tagged_regions import of_found
from saywhere.models.updown import PreparedCaption, PreparedQuestion, save_captions, save_questions
from saywhere.models.updown.task import UpDnCaptionTask, UpDnVqaTask
from saywhere.store import Store, StoreWriter
from saywhere.studio.app import create_app
from saywhere.studio.settings import StudioSettings
from saywhere.vision import Found, extract
from saywhere.vision import photo as photo_module
from tests.models import small
from tests.models.patchioner_seeing import ColourEncoder, alignment, bank, decoder, photo, seer, tags
from tests.models.test_patchioner_seer import CONFIG

ROOT = Path(__file__).resolve().parents[2]
TEXT = "a red cat and a blue cup"
FAMILIES = ("mitr", "updown-caption", "updown-vqa", "oscar")
REGIONS_ASKED = (WholeImage(), Box(0, 0, 0.5, 1), Point(0.9, 0.9), Trace([(0.1, 0.1, 0.0), (0.4, 0.9, 2.0)]))


@pytest.fixture(autouse=True)
def _colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every encoder is the one of the world of three colours."""
    for module in ("saywhere.vision", "saywhere.models.photo_regions"):
        monkeypatch.setattr(f"{module}.open_encoder", lambda name, input_px=None: ColourEncoder())


@pytest.fixture
def views(tmp_path: Path) -> Path:
    """What `saywhere look` keeps of three photos."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in ("a", "b", "c"):
        photo().save(folder / f"{name}.png")
    extract(sorted(folder.iterdir()), tmp_path / "views", ColourEncoder())
    return tmp_path / "views"


def built(task_class: Any, folder: Path, **sizes: Any) -> Any:
    """The network of a task on a prepared folder, as the trainer would begin with it."""
    sections = ({**sizes}, {"folder": folder})
    kinds = (task_class.model_section, task_class.data_section)
    values = (msgspec.convert(one, kind, strict=False) for one, kind in zip(sections, kinds, strict=True))
    return task_class(*values).build(torch.Generator().manual_seed(0))


def make_mitr(root: Path, views: Path) -> Any:
    words = Vocabulary.of_words([TEXT])
    ids = np.array(words.encode(TEXT.split()).ids)
    boxes, located = np.tile(np.float32([0, 0, 1, 1, 1]), (len(ids), 1)), np.ones(len(ids), bool)
    rows = [
        PreparedNarrative(image, split, ids, boxes, located, image)
        for image, split in (("a", "train"), ("b", "validation"), ("c", "test"))
    ]
    with open_features(views) as features:
        save_prepared(root / "data", features, rows, words, {})
    return built(MitrTask, root / "data", width=16, heads=2, feed_forward=16)


def make_captioner(root: Path, views: Path) -> Any:
    captions = [PreparedCaption(name, name, "train" if name == "a" else "validation", TEXT) for name in "abc"]
    with open_features(views) as features:
        save_captions(root / "data", features, captions, {}, 1)
    return built(UpDnCaptionTask, root / "data", embedding=5, width=8, attention=7)


def make_vqa(root: Path, views: Path) -> Any:
    asked = [
        PreparedQuestion(name, name, "train" if name == "a" else "validation", "is it red", "is", "yes/no", ("yes",))
        for name in "abc"
    ]
    with open_features(views) as features:
        save_questions(root / "data", features, asked, {}, 1)
    return built(UpDnVqaTask, root / "data", embedding=5, width=8)


def make_oscar(root: Path, views: Path) -> Any:
    """From the regions of a model's looks, as `saywhere prepare levels` keeps them."""
    tiny = make_seer(root)
    about = {"model": tiny.name, "region_set": REGION_SET}
    with StoreWriter(root / "looks", REGIONS, REGION_FIELDS, about) as writer:
        for name in "abc":
            look = saywhere.load(tiny).look(views.parent / "photos" / f"{name}.png")
            writer.add(name, **region_row(of_found(look.region_set, [Found((0, 0, 0.5, 1), "cat", 0.9)])))
    texts = {"object": TEXT, "scene": "in a garden"}
    captions = [
        LevelCaption(f"{name}-{level}", name, "train" if name == "a" else "validation", level, text)
        for name in "abc"
        for level, text in texts.items()
    ]
    save_level_captions(root / "data", StoredImages(Store(root / "looks"), tagged_regions), captions, {})
    sizes = {"width": 8, "layers": 1, "heads": 2, "feed_forward": 8}
    return built(OscarTask, root / "data", **sizes)


def make_seer(root: Path) -> Path:
    folder = root / "seer"
    alignment().save_pretrained(folder / "alignment")
    tags().save_pretrained(folder / "tags")
    bank().save(folder / "memory.safetensors")
    decoder().save_pretrained(folder / "decoder")
    save_config(folder, CONFIG | {"writers": {"own": "decoder"}, "detector": False})
    return folder


MAKERS: dict[str, Callable[[Path, Path], Any]] = {
    "mitr": make_mitr,
    "updown-caption": make_captioner,
    "updown-vqa": make_vqa,
    "oscar": make_oscar,
}
CAN = {
    "mitr": ("caption", "ground", "narrate"),
    "updown-caption": ("caption",),
    "updown-vqa": ("answer",),
    "oscar": ("caption", "scene"),
}
ASKING: dict[str, Callable[[Look], object]] = {
    "caption": lambda look: look.caption(),
    "ground": lambda look: look.ground(TEXT),
    "narrate": lambda look: look.narrate(),
    "answer": lambda look: look.answer("is it red?"),
    "scene": lambda look: look.scene(),
    "segment": lambda look: look.segment(Point(0.5, 0.5)),
}


def exported(family: str, root: Path, views: Path) -> Path:
    folder = root / f"my-{family}"
    MAKERS[family](root, views).save_pretrained(folder)
    if (root / "seer").is_dir():
        (root / "seer").rename(folder / "seer")
    return folder


@pytest.mark.parametrize("family", FAMILIES)
def test_what_was_learnt_is_loaded_by_its_folder_and_does_what_it_can(family: str, tmp_path: Path, views: Path) -> None:
    model = saywhere.load(exported(family, tmp_path, views))
    assert (model.name, model.skills) == (f"my-{family}", CAN[family])
    look = model.look(tmp_path / "photos" / "a.png")
    assert isinstance(look, Look)
    assert look.image_id == "a"
    for skill, ask in ASKING.items():
        if skill in model.skills:
            assert ask(look)
        else:
            with pytest.raises(MissingSkill, match=f"my-{family} cannot {SKILLS[skill]}") as refused:
                ask(look)
            assert (refused.value.skill, refused.value.model) == (skill, f"my-{family}")
            assert "saywhere-base" in refused.value.has_it


@pytest.mark.parametrize("family", [family for family in FAMILIES if "caption" in CAN[family]])
def test_captions_of_regions_are_the_same_alone_and_among_others_and_say_what_they_are_of(
    family: str, tmp_path: Path, views: Path
) -> None:
    look = saywhere.load(exported(family, tmp_path, views)).look(photo())
    together = look.captions(REGIONS_ASKED)
    assert [one.region for one in together] == list(REGIONS_ASKED)
    assert {one.origin for one in together} == {f"my-{family}"}
    for region, one in zip(REGIONS_ASKED, together, strict=True):
        alone = look.caption(region)
        assert (alone.text, type(alone)) == (one.text, Caption)
        assert alone.score == pytest.approx(one.score, abs=1e-4)
        assert one.score <= 0
    assert look.captions([]) == []
    with pytest.raises((InvalidValue, UnknownName), match="level"):
        look.caption(level="mood")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_look_goes_on_from_a_view_that_was_kept(family: str, tmp_path: Path, views: Path) -> None:
    model = saywhere.load(exported(family, tmp_path, views))
    look = model.look(photo())
    again = model.see(look.view)
    np.testing.assert_array_equal(again.places.features, look.places.features)
    skill = model.skills[0]
    assert str(ASKING[skill](again)) == str(ASKING[skill](look)) or skill == "answer"


def test_a_photo_s_regions_are_those_that_training_read(tmp_path: Path, views: Path) -> None:
    look = saywhere.load(exported("updown-caption", tmp_path, views)).look(tmp_path / "photos" / "a.png")
    with open_features(views) as features:
        learnt = features["a"]
    np.testing.assert_allclose(look.places.features, learnt.features, atol=1e-3)
    np.testing.assert_allclose(look.places.boxes_xyxy, learnt.boxes_xyxy, atol=1e-6)


def test_a_caption_of_a_region_reads_the_photo_s_regions_that_lie_in_it() -> None:
    frame = ColourEncoder().frame((40, 40))
    boxes = np.float32([(0, 0, 0.5, 1), (0.25, 0, 0.75, 1), (0.5, 0, 1, 1), (0.5, 0.5, 0.5, 1)])
    assert inside(boxes, WholeImage(), frame).all()
    assert inside(boxes, Box(0, 0, 0.5, 1), frame).tolist() == [True, True, False, False]
    assert inside(boxes, Box(0.8, 0.1, 0.9, 0.2), frame).tolist() == [False, False, True, False]
    assert inside(boxes, Polygon([(0, 0), (0.5, 0), (0.5, 1), (0, 1)]), frame).tolist() == [True, True, False, False]


def test_what_is_out_of_sight_of_an_oscar_changes_nothing(tmp_path: Path, views: Path) -> None:
    model = saywhere.load(exported("oscar", tmp_path, views))
    left = Box(0, 0, 0.5, 1)
    plain = model.look(photo())
    painted = photo()
    painted.paste("white", (30, 0, 40, 40))
    # The whole photo is a place too, and is in sight only of the whole.
    assert model.look(painted).caption(left).score == pytest.approx(plain.caption(left).score, abs=1e-6)
    assert model.look(painted).caption().score != pytest.approx(plain.caption().score, abs=1e-6)


def test_a_mitr_with_an_eye_of_its_own_needs_no_encoder(tmp_path: Path) -> None:
    words = Vocabulary.of_words([TEXT])
    config = {**small.SMALL.to_dict(), "words": len(words), "photo_px": 16}
    model = MITR.fresh(type(small.SMALL)(**config), 0).attach(words)  # type: ignore[arg-type]
    model.save_pretrained(tmp_path / "eyed")
    look = saywhere.load(tmp_path / "eyed").look(photo())
    pixels = np.asarray(photo().resize((16, 16), Image.Resampling.BOX))
    [direct] = saywhere.load(tmp_path / "eyed").tasks.ground([pixels], [TEXT])
    np.testing.assert_allclose(look.grounded(TEXT).boxes.boxes_xyxy, direct.boxes.boxes_xyxy, atol=1e-5)


def test_a_decoder_writes_with_the_eyes_and_the_memory_of_the_model_that_comes_with_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = make_seer(tmp_path)
    decoder(3).save_pretrained(tmp_path / "mine")
    monkeypatch.setattr("saywhere.models.patchioner.seer.embedded", lambda: base)
    model = saywhere.load(tmp_path / "mine")
    look = model.look(photo())
    assert (model.name, model.skills) == ("mine", ("caption", "ground", "narrate"))
    closed = saywhere.load(base).writer.objects.gap.close(look.aligned.vectors([WholeImage()])).vectors
    assert look.caption().text == decoder(3).write(closed, model.generation)[0].text
    with pytest.raises(UnknownName, match="writer"):
        open_with_writer(tmp_path / "mine", "other", base=seer())


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (None, r"not said in regions\.json"),
        (RegionSource(file="cocobu.tsv"), r"those of the file cocobu\.tsv"),
        (RegionSource(encoder={"encoder": "greys"}), "another one than in training"),
    ],
)
def test_a_network_whose_regions_cannot_be_made_says_why(
    source: RegionSource | None, reason: str, tmp_path: Path, views: Path
) -> None:
    folder = exported("updown-vqa", tmp_path, views)
    assert read_source(folder) == RegionSource(encoder={"encoder": "colours"})
    save_source(folder, source)
    with pytest.raises((InvalidFile, InvalidValue), match=reason):
        saywhere.load(folder)


def test_a_network_reads_the_set_of_regions_that_it_learnt_from(tmp_path: Path, views: Path) -> None:
    folder = exported("oscar", tmp_path, views)
    source = read_source(folder)
    assert source is not None
    assert source.region_set == REGION_SET
    # As an answerer of states would have them: other places than networks learn from.
    places = RegionFeatures(np.ones((3, answer_size(3))), [(0, 0, 1, 1)] * 3)
    sizes = {}
    for region_set in (REGION_SET, ""):
        save_source(folder, RegionSource(model=source.model, region_set=region_set))
        eye = open_eye(read_source(folder), folder)
        view = eye.look(photo())
        look = eye.model.see(view)
        look.places = places
        eye.model.see = lambda view, look=look: look
        sizes[region_set] = len(eye.regions(view))
    assert sizes == {REGION_SET: 1 + 16, "": 3}


def test_an_unknown_set_of_regions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "regions.json").write_text('{"model": "saywhere-base", "region_set": "corners"}')
    with pytest.raises(InvalidFile, match="no model gives regions that are 'corners'"):
        read_source(tmp_path)


def test_regions_of_another_size_are_refused(tmp_path: Path, views: Path) -> None:
    network = MAKERS["updown-vqa"](tmp_path, views)
    network.regions_from = RegionSource(model=make_seer(tmp_path / "other").name)
    network.save_pretrained(tmp_path / "other")
    with pytest.raises(InvalidValue, match=f"have {answer_size(3)} numbers each, but the model other reads 3"):
        saywhere.load(tmp_path / "other").look(photo()).answer("is it red?")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, r"neither seer\.json nor config\.json"),
        ("{", "is not JSON"),
        ("[]", "is not a JSON object"),
        ('{"model": "patchioner-tags"}', r"a part of a seer is used through the folder that has seer\.json"),
        ('{"model": "t5"}', "holds a t5, which does not look at photos"),
    ],
)
def test_a_folder_that_holds_no_model_is_a_clear_error(content: str | None, reason: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(InvalidFile, match=reason):
        saywhere.load(tmp_path)


def test_a_run_is_to_be_exported_first(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(InvalidFile, match="saywhere export"):
        saywhere.load(tmp_path)


def test_a_kind_can_be_added_and_is_opened_from_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))
    registry.register("mute", f"{__name__}:open_mute", ("chat",))
    (tmp_path / "config.json").write_text(json.dumps({"model": "mute"}))
    assert saywhere.load(tmp_path) == (tmp_path, "")  # type: ignore[comparison-overlap]
    assert "mute" in registry.known_kinds()
    kinds = [f"a model of the kind {kind}" for kind in ("mute", "seer", "tracevlm", "tracevlm-small")]
    assert registry.with_skill("chat") == ("saywhere-base", "saywhere-trace", *kinds)
    with pytest.raises(InvalidValue, match="already registered"):
        registry.register("mute", "elsewhere:open", ())
    with pytest.raises(InvalidValue, match="not of the form"):
        registry.register("loud", "nowhere", ())


def open_mute(folder: Path, part: str) -> Any:
    return folder, part


def test_what_a_trained_model_needs_of_others_is_known(tmp_path: Path, views: Path) -> None:
    folder = exported("updown-vqa", tmp_path, views)
    fingerprint = {"0_encoder": "efficientnet-lite0", "1_encoder": "efficientnet-lite2", "found_by_detector": "ssd"}
    save_source(folder, RegionSource(encoder=dict(fingerprint)))
    wanted = ("efficientnet-lite0", "efficientnet-lite2", "efficientdet-lite2-coco")
    assert loading.needed_assets(folder) == wanted
    save_source(folder, RegionSource(model="saywhere-base"))
    assert loading.needed_assets(folder) == loading.needed_assets(texts=False)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_commands_use_a_trained_model_and_say_what_it_cannot_do(tmp_path: Path, views: Path) -> None:
    asked = tmp_path / "photos" / "a.png"
    mitr = exported("mitr", tmp_path, views)
    assert run("caption", asked, "--box", "0,0,.5,1", "--model", mitr).stdout.startswith("box 0,0,0.5,1: ")
    said = json.loads(run("ground", asked, "a cat", "--model", mitr, "--json").stdout)
    assert (said["made_by"]["model"], len(said["words"])) == ("my-mitr", 2)
    told = run("narrate", asked, "--model", mitr, "--json")
    assert json.loads(told.stdout)["made_by"]["model"] == "my-mitr"
    weighed = run("caption", asked, "--weighting", "gaussian", "--model", mitr)
    assert "does not mix a region's patches" in str(weighed.exception)
    refused = run("answer", asked, "is it red?", "--model", mitr)
    assert isinstance(refused.exception, MissingSkill)
    assert "updown-vqa" in str(refused.exception)


def test_the_gallery_shows_what_a_model_can_do_and_says_what_it_cannot(tmp_path: Path, views: Path) -> None:
    folder = exported("oscar", tmp_path, views)
    ran = run("report", "gallery", tmp_path / "photos", "--model", folder, "--out", tmp_path / "page.html")
    assert ran.exit_code == 0, ran.exception
    page = (tmp_path / "page.html").read_text()
    assert "looked at by my-oscar, which cannot show where a sentence is or tell a photo and point along" in page
    assert "<dt>scene</dt>" in page
    refused = run("report", "gallery", tmp_path / "photos", "--model", exported("updown-vqa", tmp_path / "vqa", views))
    assert isinstance(refused.exception, MissingSkill)


def test_the_studio_serves_a_trained_model_with_the_skills_it_has(tmp_path: Path, views: Path) -> None:
    from fastapi.testclient import TestClient

    model: Model = saywhere.load(exported("updown-vqa", tmp_path, views))
    settings = StudioSettings(tmp_path / "studio")
    with TestClient(create_app(settings, model), "http://127.0.0.1:8765") as client:
        skills = client.get("/api/status").json()["model"]["skills"]
        assert {name for name, facts in skills.items() if facts["has"]} == {"answer"}
        assert "saywhere-base" in skills["caption"]["how"]
        sent = (tmp_path / "photos" / "a.png").read_bytes()
        photo_id = client.post("/api/photos", content=sent, headers={"Content-Type": "image/png"}).json()["id"]
        given = client.post(f"/api/photos/{photo_id}/answer", json={"question": "is it red?"})
        assert given.json()["answer"] == "yes"
        refused = client.post(f"/api/photos/{photo_id}/captions", json={"regions": [{"kind": "whole"}]})
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "no_skill")


def test_a_photo_is_decoded_once_on_its_way_to_a_caption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    decoded = photo_module._decoded
    monkeypatch.setattr(photo_module, "_decoded", lambda source: read.append(source) or decoded(source))
    photo().save(tmp_path / "pets.png")
    assert seer().look(tmp_path / "pets.png").caption(Box(0, 0, 0.5, 1)).text == "a cat"
    assert len(read) == 1


def test_naming_a_box_and_finding_a_text_import_no_drawing_library(tmp_path: Path) -> None:
    photo().save(tmp_path / "pets.png")
    code = f"""
import sys
from typer.testing import CliRunner
from saywhere import loading
from saywhere.cli.app import app
from tests.models.patchioner_seeing import seer
loading.load, loading.needed_assets = (lambda name: seer()), (lambda name, texts: ())
for command in (["caption", "--box", "0,0,0.5,1"], ["ground", "a cat"]):
    print(CliRunner().invoke(app, [command[0], {str(tmp_path / "pets.png")!r}, *command[1:]]).stdout, end="")
print("matplotlib" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout.splitlines() == ["box 0,0,0.5,1: a cat", "a cat  0.000,0.000,0.500,1.000", "False"]
