"""Which keys some query can select: the vertices of the convex hull of the keys.

Reading order: selectable (copyable, the entry point), cascade (tests of increasing cost), candidate_queries and
active_set (the tests), origin_in_hull (the problem that the active set solves).
"""
