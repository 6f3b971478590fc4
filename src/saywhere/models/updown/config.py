"""What shape the two UpDn networks have: everything that their weights fix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from saywhere.core.errors import UnknownName
from saywhere.models.common.config import ShapeConfig

ACTIVATIONS = ("gated tanh", "gelu")


@dataclass(frozen=True, slots=True)
class UpDnConfig(ShapeConfig):
    """The shape of the network that answers questions. The defaults are those of the released UpDn.

    words: V, how many words can be read, the unknown word among them; see `saywhere.language.vocabulary`.
    answers: how many answers can be given.
    region_size: numbers in the feature of one region or patch.
    embedding: of a word. width: of the GRU and of every layer after it.
    max_words: words of a question that are read; the rest is cut off.
    dropout: on the product that attends. answer_dropout: before the answers.
    use_boxes: whether x1, y1, x2, y2 and area follow each region's feature.
    activation: "gated tanh", as Teney et al. have it, or "gelu"; see `layers`.
    """

    words: int
    answers: int
    region_size: int = 2048
    embedding: int = 300
    width: int = 1024
    max_words: int = 14
    dropout: float = 0.2
    answer_dropout: float = 0.5
    use_boxes: bool = False
    activation: str = "gated tanh"
    family: ClassVar[str] = "UpDn"

    def __post_init__(self) -> None:
        ShapeConfig.__post_init__(self)
        if self.activation not in ACTIVATIONS:
            raise UnknownName("UpDn activation", str(self.activation), ACTIVATIONS)


@dataclass(frozen=True, slots=True)
class UpDnCaptionConfig(ShapeConfig):
    """The shape of the captioner. The defaults are the paper's.

    words, region_size, use_boxes: as for `UpDnConfig`. embedding: of a word. width: of both LSTMs.
    attention: of the layer that compares regions with the attention LSTM's state. max_words: of a caption.
    dropout: before the words.
    """

    words: int
    region_size: int = 2048
    embedding: int = 1000
    width: int = 1000
    attention: int = 512
    max_words: int = 20
    dropout: float = 0.5
    use_boxes: bool = False
    family: ClassVar[str] = "UpDn"
