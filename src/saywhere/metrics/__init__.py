"""Measures: each one a function, and a class with update, compute and reset."""

from saywhere.metrics.attention import CC, KL, NSS, SIM, AUCJudd, auc_judd, cc, kl, nss, sim
from saywhere.metrics.dense import DenseMAP, DenseScores, DetectedRegions, TrueRegions, dense_map
from saywhere.metrics.lbm import LBM, lbm, lbm_many, located_boxes
from saywhere.metrics.ranking import (
    RBO,
    AverageOverlap,
    IoUAt,
    RankBiasedOverlap,
    Spearman,
    average_overlap,
    iou_at,
    rank_biased_overlap,
    ranking_from_scores,
    spearman,
)
from saywhere.metrics.referring import (
    CIoU,
    GIoU,
    PrecisionAt,
    box_iou,
    ciou,
    giou,
    mask_iou,
    paired_box_iou,
    precision_at,
)
from saywhere.metrics.scanpath import ScanpathDistance, scanpath_distance
from saywhere.metrics.vqa import (
    VQAAccuracy,
    VQAScores,
    YesNo,
    YesNoScores,
    normalise_answer,
    soft_scores,
    vqa_accuracy,
    yes_no_scores,
)
