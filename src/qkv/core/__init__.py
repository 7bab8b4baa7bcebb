"""Attention itself: pure functions on tensors."""
