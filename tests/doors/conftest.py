"""What tests of the Studio use, too."""

from tests.studio.conftest import open_studio, seer

__all__ = ["open_studio", "seer"]
