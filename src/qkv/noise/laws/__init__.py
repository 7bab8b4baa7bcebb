"""The distribution of one weight under noise."""
