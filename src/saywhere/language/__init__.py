"""Words and phrases of English text."""

from saywhere.language.phrases import phrases_of

__all__ = ["phrases_of"]
