"""Plots, one module per package."""
