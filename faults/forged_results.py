"""Results beside certificates, forged: what `--save` writes for people, with other arrays, bounds, names and types.

Every file whose result says more than its certificates must be refused.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from faults.count import FaultCount, Progress, Tally, nothing
from faults.processes import run as run_command
from faults.processes import scratch
from faults.verbs import words_of

KIND = "results beside certificates, forged"
VERBS = ("copy", "blend", "project", "wire", "reach", "copyable", "wire-texts")
BOUNDS = {"distance", "output_distance", "residual", "least_norm", "least_norm_within_tol", "distance_at_least",
          "at_least", "tol"}  # fmt: skip
"""Single numbers of results that docs/certificates.md calls bounds."""


def run(count: int, seed: int, progress: Progress = nothing) -> FaultCount:
    """Change the result in genuine files and verify them; whether it still says what it did is judged apart."""
    from qkv.design.certificates.certificate import verify_file
    from qkv.errors import QkvError

    tally, rng, names = Tally(KIND, count, progress), np.random.default_rng(seed), list(documents())
    with scratch() as folder:
        path = folder / "forged.json"
        for i in range(count):
            genuine = documents()[names[i % len(names)]]
            forged = copy.deepcopy(genuine)
            if rng.random() < 0.2:
                foreign_certificates(rng, forged)
            while forged["result"] == genuine["result"]:
                CHANGES[rng.integers(len(CHANGES))](rng, forged["result"])
            path.write_text(json.dumps(forged))
            try:
                accepted = all(verify_file(path))
            except QkvError:
                accepted = False
            except Exception as why:
                tally.add("tracebacks", f"{type(why).__name__}: {why}: {json.dumps(forged['result'])[:600]}")
                continue
            told = says_more(genuine, forged["result"])
            if accepted and told:
                tally.add("believed", f"{names[i % len(names)]}: {told}: {json.dumps(forged['result'])}")
            else:
                tally.add("other_input" if accepted else "refused")
    return tally.result(
        "Another input: what nothing certifies, and the documents say so: names of items, a tolerance that no "
        "certificate holds, and what is missing or null."
    )


@cache
def documents() -> dict[str, dict[str, Any]]:
    """What `--save` of each design verb wrote, by the verb."""
    from qkv.design.certificates import save

    found = {}
    with scratch() as folder:
        for verb in VERBS:
            words = [word.replace(".safetensors", ".json") for word in words_of(f"design {verb}", folder)]
            done = run_command(words, folder)
            if done.code not in (0, 1):
                raise RuntimeError(f"design {verb}: {done.err}")
            found[verb] = json.loads((folder / words[words.index("--save") + 1]).read_text())
        for name, design in impossible().items():
            save(design.certificates, folder / "none.json", design.to_json())
            found[name] = json.loads((folder / "none.json").read_text())
    return found


def impossible() -> dict[str, Any]:
    """Designs that find nothing, with a proof of it."""
    import qkv

    keys = [[4.0, 0.0], [0.0, 4.0], [2.0, 2.0]]
    return {
        "copy: none": qkv.design.copy(keys, 2),
        "wire: none": qkv.design.wire(keys, {0: 2, 1: 2}, dict.fromkeys((0, 1), keys[0])),
        "project: none": qkv.design.project([[1.0], [0.0]], [[2.0], [0.0]]),
    }


def says_more(genuine: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The fields of a forged result that say something else than the genuine ones, and not by what is free: names, a
    tolerance that no certificate holds, rounding."""
    before = genuine["result"]
    found = [
        name
        for name, new in after.items()
        if new is not None and not _same(before.get(name), new) and not _free(name, new, genuine, after)
    ]
    below = "distance_at_least_below_norm"  # without it, the distance is that of every query
    if after.get("distance_at_least") is not None and after.get(below) is None and before.get(below) is not None:
        found.append(below)
    return found


def _free(name: str, new: Any, genuine: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether another value of a field says nothing else."""
    old, first = genuine["result"].get(name), genuine["certificates"][0]
    if name == "labels":
        plain = isinstance(new, list) and all(isinstance(v, str | int) and not isinstance(v, bool) for v in new)
        items = first["data"].get("keys", first["data"].get("X", ()))
        return plain and len(set(new)) == len(new) == len(items)
    if name == "wanted" and isinstance(new, dict) and isinstance(old, dict):
        return _same(list(old.values()), list(new.values()))
    if name == "answers" and isinstance(new, list) and all(isinstance(each, dict) for each in new):
        return _same(_unnamed(old), _unnamed(new))
    if name == "shared" and _vector(old) and _vector(new) and len(old) == len(new):  # computed again, to rounding
        return float(np.abs(np.subtract(new, old)).max()) <= 1e-8 * float(np.abs(old).max())
    if name == "rules" and first["kind"].startswith("no wiring") and _vector(new):  # proved of some is proved of all
        return len(set(new)) == len(new) and set(first["data"]["rules"]) <= set(new) <= set(
            range(len(first["data"]["X"]))
        )
    if name == "tol" and _vector([new]):  # where no certificate holds it, it decides what is possible
        return 0 < new < 1 and not _tolerated(genuine, float(new))
    if name in ("multiple", "distance") and first["kind"] == "unreachable" and _vector([new]):
        return "distance" not in after or _is_distance(first["data"], after)
    return False


def _unnamed(answers: Any) -> Any:
    """Decisions without the names of the items."""
    rows = [{**each, "item": None, "combination": each.get("combination") or {}} for each in answers or ()]
    named = [row for row in rows if isinstance(row["combination"], dict)]
    return [{**row, "combination": [*row["combination"].values()]} for row in named]


def _is_distance(data: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether the output is as far from the target as a result says, at the multiple that it names; in float64."""
    if not _vector([after.get("multiple"), after["distance"]]):
        return False
    x, target = np.array(data["X"]), np.array(data["target"])
    token = int(data["token"])
    with np.errstate(all="ignore"):  # of a multiple that overflows nothing is known, and it is not what was found
        x[token] += after["multiple"] * np.array(data["along"])
        scores = x @ np.array(data["K"]).T @ (np.array(data["Q"]) @ x[token])
        weights = np.exp(scores - scores.max())
        output = weights / weights.sum() @ (x @ np.array(data["V"]).T)
    size = float(np.linalg.norm(output) + np.linalg.norm(target))
    return abs(float(np.linalg.norm(output - target)) - after["distance"]) <= 1e-7 * size


def _tolerated(genuine: dict[str, Any], tol: float) -> bool:
    """Whether another tolerance makes a false statement of "possible", or differs from a certified one."""
    first = genuine["certificates"][0]
    if "tol" in first["data"]:
        return True
    if first["kind"] == "unreachable":
        return bool(first["claims"]["distance"] <= tol * float(np.linalg.norm(first["data"]["target"])))
    reads = bool(np.max(first["claims"].get("distance", 0.0)) <= tol)
    return genuine["result"].get("possible", reads) is not reads


def _same(one: Any, other: Any) -> bool:
    """Equal, where 1 is 1.0 and -0 is 0, but true is not 1."""
    return json.dumps(_plain(one)) == json.dumps(_plain(other))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value + 0.0 if isinstance(value, int | float) and not isinstance(value, bool) else value


def _vector(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in value)


# Changes, each of a result in place


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where the numbers, texts and empty places are."""
    if isinstance(value, dict):
        return [p for name, each in value.items() for p in leaves(each, (*path, name))]
    if isinstance(value, list):
        return [p for i, each in enumerate(value) for p in leaves(each, (*path, i))]
    return [path]


def holder_of(result: dict[str, Any], path: tuple[Any, ...]) -> Any:
    """What holds the last step of a path."""
    found: Any = result
    for step in path[:-1]:
        found = found[step]
    return found


def a_leaf(rng: np.random.Generator, result: dict[str, Any]) -> None:
    """One number, text or empty place becomes something else; each field is as likely."""
    fields = sorted(result)
    name = fields[rng.integers(len(fields))]
    paths = leaves({name: result[name]})
    if not paths:
        return
    path = paths[rng.integers(len(paths))]
    holder = holder_of(result, path)
    old = holder[path[-1]]
    number = float(old) if isinstance(old, int | float) else 1.0
    others: list[Any] = [
        number * 2, number / 2, -number, number * (1 + 1e-9), number + 1e-12, 0.0, 1e308, str(old), True, None, [old],
        {"value": old}, [], int(number) if abs(number) < 1e9 else 3,
    ]  # fmt: skip
    holder[path[-1]] = others[rng.integers(len(others))]


def a_list(rng: np.random.Generator, result: dict[str, Any]) -> None:
    """A list loses, doubles or exchanges entries, or is wrapped."""
    fields = sorted(name for name, value in result.items() if isinstance(value, list) and value)
    if not fields:
        return
    name = fields[rng.integers(len(fields))]
    rows = result[name]
    if rng.random() < 0.4 and isinstance(rows[0], list) and rows[0]:
        rows = rows[int(rng.integers(len(rows)))]
    i, j = (int(k) for k in rng.integers(len(rows), size=2))
    step = int(rng.integers(4))
    if step == 0:
        rows.pop(i)
    elif step == 1:
        rows.append(rows[i])
    elif step == 2:
        rows[i], rows[j] = rows[j], rows[i]
    else:
        result[name] = [result[name]]


def a_name(rng: np.random.Generator, result: dict[str, Any]) -> None:
    """A field gets the value of another, or moves to another name."""
    fields = sorted(result)
    one, other = (fields[int(k)] for k in rng.integers(len(fields), size=2))
    if rng.random() < 0.5:
        result[one] = copy.deepcopy(result[other])
    else:
        result[other] = result.pop(one)


def another_result(rng: np.random.Generator, result: dict[str, Any]) -> None:
    """A field of another file's result, with its value there."""
    verbs = list(documents())
    foreign = documents()[verbs[rng.integers(len(verbs))]]["result"]
    name = sorted(foreign)[rng.integers(len(foreign))]
    result[name] = copy.deepcopy(foreign[name])


def a_bound(rng: np.random.Generator, result: dict[str, Any]) -> None:
    """A bound that is better than the certified one, or one more."""
    name = sorted(BOUNDS)[rng.integers(len(BOUNDS))]
    old = result.get(name)
    size = float(old) if isinstance(old, int | float) and not isinstance(old, bool) else 1.0
    result[name] = size * float(rng.choice([0.0, 0.5, 1 - 1e-9, 1 + 1e-9, 2.0, 1e6]))


def an_array(rng: np.random.Generator, result: dict[str, Any]) -> None:
    """An array, a number or a sentence that a reader may take for a certified one."""
    name = str(
        rng.choice(
            [
                "query",
                "keys",
                "values",
                "Q",
                "K",
                "V",
                "W",
                "weights",
                "mix",
                "M",
                "X",
                "tokens",
                "says",
                "norm",
                "status",
            ]
        )
    )
    array = rng.normal(size=(2, 2)).tolist()
    others = [array, array[0], {"rows": array}, [[*map(str, array[0])], array[1]], 1.0, "a sentence", True]
    result[name] = others[int(rng.integers(len(others)))]


def foreign_certificates(rng: np.random.Generator, forged: dict[str, Any]) -> None:
    """True certificates of another file beside its own, or before them, and bounds and arrays of that result."""
    verbs = list(documents())
    foreign = copy.deepcopy(documents()[verbs[rng.integers(len(verbs))]])
    own = forged["certificates"]
    forged["certificates"] = (
        [*own, *foreign["certificates"]] if rng.random() < 0.7 else [*foreign["certificates"], *own]
    )
    for name in sorted(set(BOUNDS | {"possible", "query"}) & set(foreign["result"]) & set(forged["result"])):
        if rng.random() < 0.5:
            forged["result"][name] = foreign["result"][name]


def a_missing_field(rng: np.random.Generator, result: dict[str, Any]) -> None:
    """A field less."""
    if len(result) > 1:
        del result[sorted(result)[rng.integers(len(result))]]


CHANGES: tuple[Callable[[np.random.Generator, dict[str, Any]], None], ...] = (
    a_leaf, a_leaf, a_leaf, a_list, a_name, another_result, a_bound, an_array, a_missing_field,
)  # fmt: skip
