"""How well captions match what people wrote: BLEU, ROUGE-L, CIDEr, METEOR, SPICE and a scene-graph F-score.

Values equal those of pycocoevalcap. Each metric is a function and a class with update, compute and reset.
"""

from saywhere.metrics.captions._bleu import Bleu, bleu
from saywhere.metrics.captions._cider import Cider, DocumentFrequency, cider
from saywhere.metrics.captions._items import ScoreTable
from saywhere.metrics.captions._java import ToolFailed
from saywhere.metrics.captions._meteor import Meteor, MeteorTool, meteor
from saywhere.metrics.captions._rouge import RougeL, rouge_l
from saywhere.metrics.captions._scene_graph import SceneGraphF, scene_graph_f, scene_tuples
from saywhere.metrics.captions._scores import DEFAULT_METRICS, METRICS, CaptionScores, caption_scores
from saywhere.metrics.captions._spice import Spice, spice
from saywhere.metrics.captions._tokenize import ptb_words

__all__ = [
    "DEFAULT_METRICS",
    "METRICS",
    "Bleu",
    "CaptionScores",
    "Cider",
    "DocumentFrequency",
    "Meteor",
    "MeteorTool",
    "RougeL",
    "SceneGraphF",
    "ScoreTable",
    "Spice",
    "ToolFailed",
    "bleu",
    "caption_scores",
    "cider",
    "meteor",
    "ptb_words",
    "rouge_l",
    "scene_graph_f",
    "scene_tuples",
    "spice",
]
