"""Prepared data on disk: rows of named values in shards of bounded size, streamed, digested, resumable.

index.json                          kind, fields, where the rows come from, and every shard's size and SHA-256
00000-3fa9c1d20b77.safetensors      some rows: arrays of any shape, bytes, JSON; see `saywhere.store.shard`
"""

from saywhere.store.reader import Store, is_finished
from saywhere.store.shard import Row, Shard
from saywhere.store.writer import SHARD_BYTES, StoreWriter

__all__ = ["SHARD_BYTES", "Row", "Shard", "Store", "StoreWriter", "is_finished"]
