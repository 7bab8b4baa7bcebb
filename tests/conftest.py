"""Shapes in signatures are checked while the tests run; hypothesis has no deadline on a shared machine."""

from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

settings.register_profile("qkv", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("qkv")

install_import_hook("qkv.core", "beartype.beartype")
