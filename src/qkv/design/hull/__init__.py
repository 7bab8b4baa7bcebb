"""Which keys some query can select: the vertices of the convex hull of the keys."""
