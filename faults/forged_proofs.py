"""Forged proofs: theorems of true claims whose statement, proof or conclusion was changed; Coq must refuse each."""

from __future__ import annotations

import random
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from faults.certificate_oracle import module_of_tests
from faults.count import FaultCount, Progress, Tally, nothing

DOCUMENT = """
```claim average
given k_1..k_n orthonormal, n >= 3
let   q = t*(k_a + k_b)
then  c -> (v_a + v_b)/2 as t -> oo
then  alpha_a = exp(t)/(2*exp(t) + n - 2)
```

```claim tokens
given u_a, u_b, u_c, u_d orthogonal of norm beta
let   x_1 = u_d + u_b, x_2 = u_a, x_3 = u_c + u_b
then  alpha_{22} = exp(beta^2)/(exp(beta^2) + 2)
```
"""
CHANGES = (
    ((r"((/ 2) *v (", r"((/ 3) *v ("), (r"((/ 2) *v (", r"((2) *v (")),
    (("(INR n)) - 2))", "(INR n)) - 3))"), ("((exp num_t) /", "((2 * exp num_t) /")),
    ((") + 2)", ") + 3)"), (") + 2)", ") + 1)")),
)
"""For each theorem of the document, changes of its statement that make it false."""
SECONDS = 90.0
OUTCOMES = ("false claim", "false statement", "open proof", "admitted")


def run(count: int, seed: int, progress: Progress = nothing) -> FaultCount:
    """Forge theorems: of false claims, with a changed statement, with a proof that is cut, and with none at all."""
    tally, draw = Tally("proofs for Coq, forged", count, progress), random.Random(seed)
    if shutil.which("coqc") is None:
        return tally.result("Not run: there is no coqc on this machine.")
    from qkv.claims.kernel import coq

    genuine, false = _theorems()
    for i in range(count):
        place, kind = draw.randrange(len(genuine)), OUTCOMES[i % len(OUTCOMES)]
        if kind == "false claim":
            text = false[i // len(OUTCOMES) % len(false)]
        elif kind == "open proof":
            text = genuine[place].rpartition("Qed.")[0]
        else:
            text = _changed(genuine[place], *draw.choice(CHANGES[place]))
        if kind == "admitted":
            believed = not _is_named_as_axiom(text.partition("Proof.")[0] + "Proof. Admitted.\n", f"claim_{place}")
        else:
            believed = coq.checked(coq.HEADER + text, SECONDS).accepted
        tally.add("believed" if believed else "refused", f"{kind}: {text[:1000]}")
    note = "A quarter each: a false claim, a false statement with the true proof, a proof without its end, and one that"
    return tally.result(
        f"{note} gives up, which coqc accepts and `Print Assumptions` names. qkv itself reads no proofs."
    )


@cache
def _theorems() -> tuple[list[str], list[str]]:
    """Texts of theorems of true claims, which Coq accepts, and of false ones."""
    from qkv.claims.kernel import coq
    from qkv.claims.kernel.export import exported
    from qkv.claims.syntax.markdown import read

    claims: list[Any] = list(read(DOCUMENT))
    genuine = [exported(claim).text(f"claim_{i}") for i, claim in enumerate(claims)]
    if not coq.checked(coq.HEADER + "".join(genuine), len(genuine) * SECONDS).accepted:
        raise RuntimeError("Coq refuses the theorems of true claims")
    flips = module_of_tests("claims/kernel/flips.py").flipped
    false = [exported(other).text(f"claim_{i}") for i, claim in enumerate(claims) for other in flips(claim)]
    return genuine, false


def _changed(text: str, old: str, new: str) -> str:
    """A theorem with another statement, and the same proof."""
    statement, proof, rest = text.partition("Proof.")
    before, found, after = statement.rpartition(old)
    if not found:
        raise RuntimeError(f"{old!r} is not in the statement {statement}")
    return before + new + after + proof + rest


def _is_named_as_axiom(text: str, name: str) -> bool:
    """Whether `Print Assumptions` names a theorem as something that it rests on itself."""
    from qkv.claims.kernel import coq

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "forged.v").write_text(f"{coq.HEADER}{text}Print Assumptions {name}.\n", "ascii")
        command = ["coqc", *coq.OPTIONS, "-R", str(coq.library()), "qkv", "forged.v"]
        said = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS).stdout
    return "Axioms:" in said and f"\n{name}" in said
