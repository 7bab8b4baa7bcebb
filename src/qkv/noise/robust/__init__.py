"""Queries and heads that resist noise."""
