"""Answers of a model to questions: encoding, beam search, attention on the name. NumPy only, without torch."""
