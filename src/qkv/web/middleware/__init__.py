"""What every request passes before its route: security checks, then a fair queue."""
