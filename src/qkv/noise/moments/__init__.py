"""Mean and covariance of a reading under noise, by integration to a stated error."""
