"""Causal attention that keeps its weights for the backward pass."""
