"""Settings of all tests: shapes in signatures are checked, hypothesis has no deadline, and broken AMX is avoided.

`make test` leaves out what is slow, draws fewer examples, and begins with the longest files: with two workers, none is
left alone at the end with a long file.
"""

import random
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

from qkv.core.cpu_features import avoid_broken_amx

settings.register_profile("qkv", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("qkv"), max_examples=20)
settings.load_profile("qkv")
QUICK = "not slow"
sys.path.append(str(Path(__file__).parent))  # for `import marks`
LONGEST_FIRST = (
    "tour/test_tour.py", "web/browser/", "test_notebooks.py", "test_public_api.py", "knowledge/confidence/",
    "faults/", "claims/kernel/", "test_docs.py", "train/test_distributed.py", "train/test_loop.py",
    "web/", "test_parallel.py", "claims/test_catalogue.py", "claims/test_statements.py", "knowledge/studies/",
    "train/convert/", "train/test_run_lock.py", "cli/", "claims/symbolic/", "claims/",
)  # fmt: skip
"""Files and folders that take long, as paths begin; all others follow in their order."""

install_import_hook("qkv.core", "beartype.beartype")

avoid_broken_amx()  # before the first product, also of other libraries' models

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as in a job that a shell started in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests of Ctrl-C need it, in their processes too


def pytest_configure(config):
    settings.load_profile("quick" if config.option.markexpr == QUICK else "qkv")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    here = Path(__file__).parent

    def place(item):
        path = item.path.relative_to(here).as_posix() if item.path.is_relative_to(here) else ""
        return next((i for i, start in enumerate(LONGEST_FIRST) if path.startswith(start)), len(LONGEST_FIRST))

    items.sort(key=place)  # stable: what is not named keeps its order


@pytest.fixture(scope="session")
def damaged_copies():
    """A function from bytes to damaged copies of them, all different from the original."""

    def make(data: bytes, count: int, seed: int = 0) -> list[bytes]:
        draw, out = random.Random(seed), []
        while len(out) < count:
            copy, at = bytearray(data), draw.randrange(len(data))
            kind = draw.choice(
                ("bit",) * 5 + ("byte",) * 5 + ("digit",) * 3 + ("insert", "remove", "swap", "block", "cut")
            )
            if kind == "bit":
                copy[at] ^= 1 << draw.randrange(8)
            elif kind == "byte":
                copy[at] = draw.randrange(256)
            elif kind == "digit":  # the most plausible other text
                digits = [i for i in range(at, min(at + 200, len(data))) if 48 <= data[i] <= 57]
                if digits:
                    copy[draw.choice(digits)] = draw.randrange(48, 58)
            elif kind == "insert":
                copy.insert(at, draw.choice(b'0123456789 "{}[],\n\x00'))
            elif kind == "remove":
                del copy[at]
            elif kind == "swap":
                other = draw.randrange(len(data))
                copy[at], copy[other] = copy[other], copy[at]
            elif kind == "block":
                copy[at : at + draw.randrange(1, 64)] = bytes(draw.randrange(64))
            else:
                del copy[at:]
            if bytes(copy) != data:
                out.append(bytes(copy))
        return out

    return make
