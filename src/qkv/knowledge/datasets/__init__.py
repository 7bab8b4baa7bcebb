"""Facts, the shipped table, and texts and questions made from facts."""
