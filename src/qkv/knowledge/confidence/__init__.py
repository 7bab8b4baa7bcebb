"""How far to trust an answer: features, logistic regression, badge, metrics, calibration."""
