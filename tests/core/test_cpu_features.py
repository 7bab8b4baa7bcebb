"""AMX that is announced but cannot be used is left alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from qkv.core.cpu_features import ISA_VARIABLE, WITHOUT_AMX, amx_is_broken, avoid_broken_amx, works_with_amx

CPU = "processor\t: 0\ncpuid level\t: {level}\nflags\t\t: fpu avx2 {flags}\nbugs\t\t:\n\nprocessor\t: 1\n"


@pytest.mark.parametrize(
    ("level", "flags", "broken"),
    [
        ("28", "amx_bf16 amx_tile", True),
        ("29", "amx_bf16 amx_tile", False),
        ("28", "avx512_bf16", False),
        ("?", "amx_tile", False),
    ],
)
def test_amx_is_broken_if_its_tiles_are_not_described(level: str, flags: str, broken: bool) -> None:
    assert amx_is_broken(CPU.format(level=level, flags=flags)) is broken


@pytest.mark.parametrize(
    ("level", "flags", "allowed", "works"),
    [
        ("29", "amx_bf16 amx_tile", None, True),
        ("29", "amx_bf16 amx_tile", "AVX512_CORE_AMX", True),
        ("29", "amx_bf16 amx_tile", WITHOUT_AMX, False),
        ("28", "amx_bf16 amx_tile", None, False),
        ("29", "avx512_bf16", None, False),
    ],
)
def test_amx_works_if_the_cpu_has_it_and_nothing_rules_it_out(
    level: str, flags: str, allowed: str | None, works: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ISA_VARIABLE, raising=False)
    if allowed:
        monkeypatch.setenv(ISA_VARIABLE, allowed)
    (tmp_path / "cpuinfo").write_text(CPU.format(level=level, flags=flags))
    assert works_with_amx(tmp_path / "cpuinfo") is works and not works_with_amx(tmp_path / "missing")


def test_nothing_is_known_of_other_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ISA_VARIABLE, raising=False)
    assert not amx_is_broken("")
    avoid_broken_amx(tmp_path / "missing")
    assert ISA_VARIABLE not in os.environ


def test_the_variable_is_set_unless_the_user_has_set_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    (tmp_path / "cpuinfo").write_text(CPU.format(level="28", flags="amx_tile"))
    monkeypatch.setenv(ISA_VARIABLE, "AVX2")
    avoid_broken_amx(tmp_path / "cpuinfo")
    assert os.environ[ISA_VARIABLE] == "AVX2"
    monkeypatch.delenv(ISA_VARIABLE)
    avoid_broken_amx(tmp_path / "cpuinfo")
    assert os.environ[ISA_VARIABLE] == WITHOUT_AMX


def test_a_bfloat16_product_does_not_kill_the_process() -> None:
    code = (
        "import qkv.model.linear, torch; x = torch.ones(64, 64).bfloat16();"
        "assert torch.nn.functional.linear(x, x).float().sum() == 64 ** 3"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
