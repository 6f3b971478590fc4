"""Memory that is freed and soon needed again.

A network's layers take and free some hundred megabytes at each look. glibc gives such blocks back to the system and
gets them again, page by page, which takes as long as the arithmetic. A program may ask it not to.
"""

from __future__ import annotations

import ctypes
import sys

# Numbers of glibc's malloc.h, and bytes.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
_KEPT_BYTES, _AHEAD_BYTES = 1 << 30, 1 << 28


def keep_freed_memory() -> bool:
    """Let this process keep up to a gigabyte of freed memory; whether that could be done (glibc only).

    For programs, at their start: it concerns the whole process, so no library function does it by itself.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    asked = ((_TRIM_THRESHOLD, _KEPT_BYTES), (_MMAP_THRESHOLD, _KEPT_BYTES), (_TOP_PAD, _AHEAD_BYTES))
    return all(mallopt(what, size) == 1 for what, size in asked)
