"""Heads that serve many texts: rules over token and position vectors, for given texts or for every text.

Reading order: texts (vocabularies, and sequences of their tokens), rules (previous, duplicate, induction), circuit
(what is found), every_text (closed forms over a whole vocabulary), given_texts (the smallest head for given texts),
text_wiring (the one function for both), gpt2 (a circuit as a stock GPT-2 of transformers).
"""
