"""Patch-centric captioning: look once, then caption any region from the same patch features."""
