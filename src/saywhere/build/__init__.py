"""Data sets and memory banks made out of others."""
