"""Settings of all tests: shapes in signatures are checked, hypothesis has no deadline, and broken AMX is avoided."""

from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

from qkv.core.cpu_features import avoid_broken_amx

settings.register_profile("qkv", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("qkv")

install_import_hook("qkv.core", "beartype.beartype")

avoid_broken_amx()  # before the first product, also of other libraries' models
