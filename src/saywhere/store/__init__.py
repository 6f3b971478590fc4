"""Prepared data on disk: what it holds, told in a few letters."""
