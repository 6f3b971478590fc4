"""TraceVLM: a Qwen-VL that reads where somebody points, draws where it looks, and cuts out what it speaks of.

trajectory    points with times and frames         examples   one form for all that is learnt and asked
perception    images and points look at each other prompts    turns as ids; batch: with their images
qwen          the base, and our tokens in it       decode     answers, and what they hold
segmentation  masks out of six tokens              stages     what is trained when; task: by the trainer
objective     what is minimised                    face       the model that `saywhere.load` gives
coordinates   fractions, bins and pixels           config     what shape it has; network: all of it together
"""

from saywhere.models.tracevlm.config import TraceVlmConfig
from saywhere.models.tracevlm.coordinates import Coordinates
from saywhere.models.tracevlm.examples import (
    Exchange,
    Instruction,
    InstructionFile,
    SegmentTarget,
    answered,
    asked,
    of_narrative,
    save_instructions,
)
from saywhere.models.tracevlm.network import TraceVLM
from saywhere.models.tracevlm.qwen import QwenBody, open_qwen
from saywhere.models.tracevlm.stages import STAGES, TrainingStage, stage
from saywhere.models.tracevlm.trajectory import Trajectory

__all__ = [
    "STAGES",
    "Coordinates",
    "Exchange",
    "Instruction",
    "InstructionFile",
    "QwenBody",
    "SegmentTarget",
    "TraceVLM",
    "TraceVlmConfig",
    "TrainingStage",
    "Trajectory",
    "answered",
    "asked",
    "of_narrative",
    "open_qwen",
    "save_instructions",
    "stage",
]
