"""An eye from its folder, ready to look: the frozen trunk, what it learnt, and a name for what it finds."""

from __future__ import annotations

import hashlib
from pathlib import Path

import torch

from saywhere.models.eye.objective import EyeLearner
from saywhere.models.folder import WEIGHTS
from saywhere.vision.eye import Eye, EyeEncoder, TrunkNet
from saywhere.vision.runtime import open_runtime
from saywhere.vision.things import Namer

SHIPPED = Path(__file__).parents[1] / "base" / "eye"
"""The eye of saywhere-base, whose card says what it learnt from and how good it is."""


def open_eye(folder: str | Path = SHIPPED, kind: str = "") -> EyeEncoder:
    """kind: of runtime, see `saywhere.vision.runtime`. The trunk's weights are fetched if they are not there."""
    from saywhere.assets import cache_folder
    from saywhere.vision.focus_look import open_focus

    learner = EyeLearner.from_pretrained(folder)
    config = learner.eye.config
    eye = Eye(TrunkNet(open_focus().network, config), learner.eye)
    example = torch.zeros(1, config.input_px, config.input_px, 3, dtype=torch.uint8)
    run = open_runtime(eye, example, cache_folder() / "compiled", kind)
    digest = hashlib.sha256((Path(folder) / WEIGHTS).read_bytes()).hexdigest()
    return EyeEncoder(run, config, digest, namer=namer_of(learner))


def namer_of(learner: EyeLearner) -> Namer:
    """Calls things by the names of classes that an eye learnt."""
    sharpness = float(learner.box_scale.detach().exp())
    return Namer(learner.names, learner.name_vectors.numpy(), sharpness)
