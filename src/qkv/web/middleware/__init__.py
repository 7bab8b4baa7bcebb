"""What every request passes before its route: security checks, then a first-come-first-served queue."""
