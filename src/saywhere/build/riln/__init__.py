"""RILN, Reasoning-based Interactive Localized Narratives (TraceVLM, Section 3.3): instructions out of narratives.

grounding   stage 1: phrases with their importance, the trace thinned by it, points for every word
templates   stages 2 and 3 without any model: questions with reasoning trees, dialogues
endpoint    all stages by language models behind endpoints, one model for each role
checks      what an example must pass; overlap: 5-grams shared with evaluation text
pipeline    the builder: shards, resuming, the manifest; report, review: what people read
"""
