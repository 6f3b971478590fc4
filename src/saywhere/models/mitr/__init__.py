"""MITR, the mirrored transformer: a caption along a trace, the trace of a caption, or both from the image alone.

config    what shape a network has          batch     narratives as it reads them, and images
network   the network, task by task         features  bottom-up features from files; image: its own small eye
objective what it is trained for            baseline  the paper's encoder–decoders
decode    writing, with kept keys           released  the authors' checkpoints
skills    caption, ground, narrate, in values of `saywhere.core`
"""

from saywhere.core.grounded import Grounded
from saywhere.models.mitr.batch import (
    Batch,
    Images,
    NarrativeExample,
    collate,
    example,
    example_of,
    guided_boxes,
    guided_example,
    trace_of,
)
from saywhere.models.mitr.config import MitrConfig
from saywhere.models.mitr.network import MITR
from saywhere.models.mitr.objective import ObjectiveSettings, losses
from saywhere.models.mitr.skills import Skills
from saywhere.models.region_features import RegionFeatures, open_features

__all__ = [
    "MITR",
    "Batch",
    "Grounded",
    "Images",
    "MitrConfig",
    "NarrativeExample",
    "ObjectiveSettings",
    "RegionFeatures",
    "Skills",
    "collate",
    "example",
    "example_of",
    "guided_boxes",
    "guided_example",
    "losses",
    "open_features",
    "trace_of",
]
