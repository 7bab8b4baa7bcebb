"""Texts to training examples: text files, objectives, spans, packed batches."""
