"""CPU features that torch relies on although a virtual machine may only half provide them.

oneDNN computes bfloat16 products with AMX where the CPU has it, and asks CPUID leaf 0x1D how its tiles are shaped. Some
virtual machines announce AMX but end CPUID before that leaf; oneDNN then configures no tile, and the process dies of
an illegal instruction at its first bfloat16 product. ONEDNN_MAX_CPU_ISA restricts oneDNN to the instructions that work.
"""

from __future__ import annotations

import os
from pathlib import Path

AMX_TILE_LEAF = 0x1D  # CPUID leaf that describes AMX tiles
WITHOUT_AMX = "AVX512_CORE_FP16"  # the widest instruction set of oneDNN below AMX
ISA_VARIABLE = "ONEDNN_MAX_CPU_ISA"


def amx_is_broken(cpuinfo: str) -> bool:
    """Whether the CPU of this /proc/cpuinfo announces AMX but not the leaf that describes its tiles."""
    first = cpuinfo.split("\n\n")[0]
    fields = dict(part for line in first.splitlines() if len(part := [p.strip() for p in line.split(":", 1)]) == 2)
    level = fields.get("cpuid level", "")
    return "amx_tile" in fields.get("flags", "").split() and level.isdecimal() and int(level) < AMX_TILE_LEAF


def works_with_amx(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether oneDNN computes bfloat16 products with AMX: the CPU has it, and neither it nor the user rules it out."""
    try:
        text = cpuinfo.read_text()
    except OSError:  # not Linux
        return False
    allowed = "AMX" in os.environ.get(ISA_VARIABLE, "AMX").upper()
    return allowed and "amx_bf16" in text.split() and not amx_is_broken(text)


def avoid_broken_amx(cpuinfo: Path = Path("/proc/cpuinfo")) -> None:
    """Keep oneDNN from AMX where `amx_is_broken`; a value that the user has set stays.

    oneDNN reads the variable at its first product, so this is called before: when `qkv.model` is imported.
    """
    try:
        broken = amx_is_broken(cpuinfo.read_text())
    except OSError:  # not Linux
        return
    if broken:
        os.environ.setdefault(ISA_VARIABLE, WITHOUT_AMX)
