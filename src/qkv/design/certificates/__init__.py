"""Certificates: issued from a result, saved, loaded, and verified without any solver."""
