"""The child process of `h5_file` for texts of any length: python -m saywhere.models._h5_texts FILE NAME MOST_BYTES.

They lie in a heap of the file. Where that is damaged, HDF5 may go round in it for ever, and no error comes of it.
"""

from __future__ import annotations

import sys

import msgspec

from saywhere.core.errors import require

_PART = 256


def main(path: str, name: str, most: int) -> int:
    """Print the texts as a JSON list; 1 if they are longer than `most` bytes together."""
    h5py = require("h5py", needed_for="reading features from HDF5", extra="models")
    texts: list[str] = []
    with h5py.File(path, "r") as file:
        found = file[name]
        # A part at a time: many entries may stand for one long text.
        for start in range(0, found.size, _PART):
            part = found[start : start + _PART].tolist()
            most -= sum(len(one) for one in part)
            if most < 0:
                return 1
            texts += [one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one) for one in part]
    sys.stdout.buffer.write(msgspec.json.encode(texts))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
