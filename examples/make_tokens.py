"""Write examples/tokens.json: the three tokens of the wiring problem, and the vectors they are made of."""

import json
from pathlib import Path

BETA = 4.0
u = {name: [BETA if i == j else 0.0 for j in range(4)] for i, name in enumerate("abcd")}


def add(*vectors: list[float]) -> list[float]:
    return [sum(entries) for entries in zip(*vectors, strict=True)]


document = {
    "X": [add(u["d"], u["b"]), u["a"], add(u["c"], u["b"])],
    "writes": [add(u["b"], [-x for x in u["c"]]), u["b"]],
    **{f"u_{name}": vector for name, vector in u.items()},
}
path = Path(__file__).with_name("tokens.json")
path.write_text(json.dumps(document) + "\n")
print(f"wrote {path.name}")
