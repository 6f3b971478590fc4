"""What can go wrong with an asset that is not at hand."""

from __future__ import annotations

from saywhere.core.errors import SaywhereError


class AssetUnavailable(SaywhereError):
    """An asset that is not in the cache and could not be brought there: which, why, and what to do."""

    def __init__(self, name: str, reason: str, how_to_get: str) -> None:
        self.name, self.reason, self.how_to_get = name, reason, how_to_get
        super().__init__(f"the asset {name!r} {reason}. To get it: {how_to_get}")
