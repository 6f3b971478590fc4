"""TraceVLM on the small body, saved whole: everything in it is its own."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from saywhere.core.errors import InvalidFile, InvalidValue, UnknownName
from saywhere.models.folder import built, load_part, save_part
from saywhere.models.tracevlm.config import TraceVlmConfig
from saywhere.models.tracevlm.network import TraceVLM
from saywhere.models.tracevlm.small_body import SmallBody
from saywhere.models.tracevlm.small_config import SmallConfig
from saywhere.models.tracevlm.small_input import SmallInput, SmallReader
from saywhere.models.tracevlm.small_tokens import SmallTokenizer

KIND: Final = "tracevlm-small"
TOKENIZER: Final = "tokenizer.json"


class SmallTraceVLM(TraceVLM):
    """config: of the blocks. small: of the body, which has all that `TraceVLM` asks of one."""

    body: SmallBody  # type: ignore[assignment]
    reader: SmallReader

    def __init__(self, config: TraceVlmConfig, small: SmallConfig, tokenizer: SmallTokenizer, seed: int = 0) -> None:
        if small.vocabulary != len(tokenizer):
            raise InvalidValue("tokenizer", f"has {len(tokenizer):,} tokens, but the body {small.vocabulary:,}")
        super().__init__(config, SmallBody(small, SmallInput(small, tokenizer), seed), seed)  # type: ignore[arg-type]
        self.small, self.tokenizer = small, tokenizer
        self.reader = SmallReader(self.body.inputs, config.context)

    def save_pretrained(self, folder: str | Path, *, int8: bool = True) -> None:
        """Config, tokenizer and weights into a folder. int8: matrices in a byte a number; it loads as float32."""
        described = {"blocks": self.config.to_dict(), "body": self.small.to_dict()}
        files = {TOKENIZER: self.tokenizer.to_json().encode()}
        save_part(folder, KIND, described, self.state_dict(), files, int8=int8)

    @classmethod
    def from_pretrained(cls, source: str | Path, revision: str | None = None, dtype: str = "float32") -> SmallTraceVLM:  # noqa: ARG003 - always float32
        """A network in eval mode, from a folder or the hub."""
        part = load_part(source, KIND, revision)
        try:
            tokenizer = SmallTokenizer.from_json(part.files[TOKENIZER].decode())
            blocks, body = TraceVlmConfig.from_dict(part.config["blocks"]), SmallConfig.from_dict(part.config["body"])
            model = built(lambda: cls(blocks, body, tokenizer), part)
        except (KeyError, TypeError, UnicodeDecodeError, InvalidValue, UnknownName) as error:
            raise InvalidFile(part.folder, f"is not a small TraceVLM: {error}") from error
        return model.eval()
