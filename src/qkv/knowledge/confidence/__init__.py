"""How far to trust an answer: features, logistic models, badge, calibration, metrics."""
