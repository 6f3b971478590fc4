"""Why did the model say that? Importance of regions: people's, the network's, and how true and how alike they are."""

from saywhere.explain.curves import Curve, deletion, insertion
from saywhere.explain.faithfulness import Agreement, rank_agreement, top_box_iou, top_map_iou
from saywhere.explain.gradients import (
    feature_gradients,
    grad_cam,
    gradient_importance,
    gradient_times_input,
    shift_importance,
    twice_differentiable,
)
from saywhere.explain.heat import patch_heat, region_heat
from saywhere.explain.human import (
    HumanImportances,
    Refused,
    human_importance,
    human_importances,
    mean_attention,
    patch_boxes,
    word_attention,
)
from saywhere.explain.occlusion import occlusion, without_top
from saywhere.explain.scores import AnswerScore, Attends, MitrWordScore, PatchWordScore, Score, UpDnWordScore

__all__ = [
    "Agreement",
    "AnswerScore",
    "Attends",
    "Curve",
    "HumanImportances",
    "MitrWordScore",
    "PatchWordScore",
    "Refused",
    "Score",
    "UpDnWordScore",
    "deletion",
    "feature_gradients",
    "grad_cam",
    "gradient_importance",
    "gradient_times_input",
    "human_importance",
    "human_importances",
    "insertion",
    "mean_attention",
    "occlusion",
    "patch_boxes",
    "patch_heat",
    "rank_agreement",
    "region_heat",
    "shift_importance",
    "top_box_iou",
    "top_map_iou",
    "twice_differentiable",
    "without_top",
    "word_attention",
]
