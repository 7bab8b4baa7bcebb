"""The probability that the output lies near a target."""
