"""What the pinned packages say of their licences."""

from __future__ import annotations

import pytest

from tests.licences import SILENT, is_free, licence, main, pinned


def test_every_installed_package_is_free_to_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0
    assert "0 to look at" in capsys.readouterr().out


def test_pins_are_read_and_licences_told_apart() -> None:
    assert {"numpy", "torch", "fastapi"} <= set(pinned())
    assert set(SILENT) <= set(pinned())
    assert licence("no-such-package") is None
    assert [is_free(said) for said in ("MIT", "BSD-3-Clause", "GPL-3.0-only", "", "Proprietary")] == [
        True,
        True,
        False,
        False,
        False,
    ]
