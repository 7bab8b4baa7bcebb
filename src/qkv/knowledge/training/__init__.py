"""Training on facts: recipes over qkv.train, and texts and questions in one run."""
