from __future__ import annotations

from saywhere.studio.skills import skill_values


def test_the_base_model_without_its_segmenter_says_which_weights_are_missing() -> None:
    missing = skill_values("saywhere-base:zero-shot", ("caption",))["segment"]
    assert missing["has"] is False
    assert "mobile-sam" in str(missing["why"])
    assert "saywhere assets fetch mobile-sam" in str(missing["how"])
    assert skill_values("saywhere-base", ("caption", "segment"))["segment"] == {"has": True}
    assert "saywhere-base" in str(skill_values("mine", ("caption",))["segment"]["how"])
