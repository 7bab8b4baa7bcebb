"""What a claim's names mean: ranges, context, name_resolution, scope_checks, quantifiers."""
