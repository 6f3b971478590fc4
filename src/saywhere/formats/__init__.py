"""Files in and out: one format per module, each `read` giving values or InvalidRecord, each `write` atomic."""

from saywhere.formats.record import InvalidRecord
from saywhere.formats.registry import FORMATS, Format, detect, get, read

__all__ = ["FORMATS", "Format", "InvalidRecord", "detect", "get", "read"]
