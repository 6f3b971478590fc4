"""UpDn, bottom-up and top-down attention (Anderson et al., 2018): answers and captions from regions or patches.

config     what shape the networks have      batch      questions and captions as they read them
vqa        the network that answers          prepared   folders that training reads
captioner  the one that writes               decode     captions in words
objective  losses, and scores to explain     answering  answers in words
"""

from saywhere.models.common.answers import AnswerVocabulary
from saywhere.models.region_features import RegionFeatures
from saywhere.models.updown.answering import Answerer
from saywhere.models.updown.batch import (
    CaptionBatch,
    CaptionItem,
    QuestionBatch,
    QuestionItem,
    collate_captions,
    collate_questions,
)
from saywhere.models.updown.captioner import CaptionerOutput, UpDnCaptioner
from saywhere.models.updown.config import UpDnCaptionConfig, UpDnConfig
from saywhere.models.updown.decode import caption
from saywhere.models.updown.objective import answer_accuracy, answer_loss, answer_score, caption_loss, word_score
from saywhere.models.updown.prepared import (
    Captions,
    PreparedCaption,
    PreparedQuestion,
    Questions,
    save_captions,
    save_questions,
)
from saywhere.models.updown.vqa import UpDnVqa, VqaOutput

__all__ = [
    "AnswerVocabulary",
    "Answerer",
    "CaptionBatch",
    "CaptionItem",
    "CaptionerOutput",
    "Captions",
    "PreparedCaption",
    "PreparedQuestion",
    "QuestionBatch",
    "QuestionItem",
    "Questions",
    "RegionFeatures",
    "UpDnCaptionConfig",
    "UpDnCaptioner",
    "UpDnConfig",
    "UpDnVqa",
    "VqaOutput",
    "answer_accuracy",
    "answer_loss",
    "answer_score",
    "caption",
    "caption_loss",
    "collate_captions",
    "collate_questions",
    "save_captions",
    "save_questions",
    "word_score",
]
