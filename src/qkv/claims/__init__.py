"""Claims: written statements about attention become verdicts."""
