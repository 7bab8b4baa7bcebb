"""The meaning of a claim's names: ranges, context, scope_checks, name_resolution, declarations, quantifiers.

Reading order: ranges (intervals of numbers), context (everything declared in one claim), scope_checks and
name_resolution (what makes a claim malformed), declarations (claim to context), quantifiers (one case per item).
"""
