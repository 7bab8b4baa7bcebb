"""Python code that makes the calls behind a reply and prints what the page shows: what "Copy as Python" copies."""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from typing import Any

TAKEN_NAMES = ("np", "wire", "self_attention", "X", "names", "wired", "reading", "print", "zip", "dict", "enumerate")
"""Names in the code for wiring, which no token or vector may have there."""


def lookup(
    keys: Any,
    values: Any,
    labels: Any,
    query: Any,
    scale: float,
    wanted: Any,
    curve: tuple[float | None, int] = (None, 0),
) -> str:
    """Code that reads a memory, and computes the leak against scale.

    `curve` is the last scale, or None where the library chooses the scales, and the number of points.
    """
    end, points = curve
    scales = "" if end is None else f", scales=np.linspace(0.0, {end!r}, {points})"
    return "\n".join(
        [
            *([] if end is None else ["import numpy as np", ""]),
            "from qkv import Memory",
            "from qkv.core.display import upper_bound",
            "from qkv.design import leak",
            "",
            *_memory(keys, values, labels),
            f"query = {_vector(query)}",
            f"reading = memory.read(query, scale={scale!r})",
            f"leaks = leak(memory, query, {list(wanted)!r}{scales})",
            f"here = leak(memory, query, {list(wanted)!r}, scales=[{scale!r}], tol=None)",
            *_print_reading(),
            'print(f"leak: {float(here.leaks[0]):.4g}")',
            "if leaks.scale is not None:",
            '    print(f"leak at most {leaks.tol:g} from scale {upper_bound(leaks.scale)} on")',
            "",
        ]
    )


def design(verb: str, keys: Any, values: Any, labels: Any, wanted: Any, tol: float) -> str:
    """Code that designs a query by `verb`, copy or blend, for the wanted item or weights, and reads with it."""
    items = [wanted] if isinstance(wanted, str) else list(wanted)
    return "\n".join(
        [
            "from qkv import Memory",
            "from qkv.core.display import upper_bound",
            f"from qkv.design import {verb}, leak",
            "",
            *_memory(keys, values, labels),
            f"design = {verb}(memory, {wanted!r}, tol={tol!r})",
            "reading = memory.read(design.query)",
            f"here = leak(memory, design.query, {items!r}, scales=[1.0], tol=None)",
            *_print_reading(),
            'print(f"leak: {float(here.leaks[0]):.4g}")',
            'print(f"{design.status}: at most {upper_bound(design.distance)} from the wanted weights")',
            "if design.obstacle is not None:",
            "    print(design.obstacle.worded(dict(enumerate(memory.labels))))",
            "",
        ]
    )


def noise(
    n: int, along: float, isotropic: float, scale: float, heads: int, radius: float, n_samples: int, seed: int
) -> str:
    """Code that computes the figures of the three layouts under noise."""
    return "\n".join(
        [
            "import numpy as np",
            "",
            "from qkv import Memory",
            "from qkv.noise import Gaussian, layout_reports, reference_layouts",
            "",
            f'memory = Memory(np.eye({n}), labels=[*"abcdefgh"[:{n}], *range(9, {n + 1})])',
            f'noise = Gaussian(isotropic={isotropic!r}, along={{"a": {along!r}}})',
            f'wanted = dict.fromkeys("{"abcdefgh"[:heads]}", 1 / {heads})',
            f"layouts = reference_layouts(memory, wanted, noise, {scale!r})",
            "reports = layout_reports(",
            f"    memory, layouts, noise, wanted, {radius!r}, n_samples={n_samples!r}, seed={seed!r}",
            ")",
            "for report in reports:",
            '    print(f"{report.name}: mean {report.mean:.4g}, variance {report.variance:.4g}, ", end="")',
            f'    print(f"probability of an output within {radius!r}: {{report.probability:.4g}}")',
            "",
        ]
    )


def wiring(
    names: Sequence[str],
    vectors: Sequence[str],
    X: Sequence[Sequence[float]],
    reads: Mapping[int, Mapping[int, float]],
    writes: Mapping[int, Sequence[float]],
    tol: float,
    beta: float,
    possible: bool,
) -> str:
    """Code that designs Q, K and V, applies them to vectors of length β, and prints what each token reads.

    Args:
        names: Names of the tokens.
        vectors: Names of the vectors.
        X: Coefficients of the tokens, a row per token and a column per vector.
        reads: Wanted weights, by token.
        writes: What is written, as coefficients of the vectors, by token.
        tol: Largest distance of the weights from the rules.
        beta: Length of the vectors.
        possible: Whether there are matrices to apply.
    """
    spoken = _are_names([*names, *vectors])  # else vectors are written as numbers
    rules = {names[i]: {names[j]: w for j, w in parts.items()} for i, parts in reads.items()}
    plain = {token: next(iter(parts)) if [*parts.values()] == [1.0] else parts for token, parts in rules.items()}
    written = [f"{names[i]!r}: {_sum(row, vectors) if spoken else _vector(row)}" for i, row in writes.items()]
    tokens = (
        [
            f"{', '.join(vectors)}{',' * (len(vectors) == 1)} = np.eye({len(vectors)})  # orthonormal vectors",
            "X = np.array([",
            *(f"    {_sum(row, vectors)},  # {name}" for name, row in zip(names, X, strict=True)),
            "])",
        ]
        if spoken
        else _matrix("X", X)
    )
    return "\n".join(
        [
            "import numpy as np",
            "",
            "from qkv import self_attention" if possible else "",
            "from qkv.design import wire",
            "",
            f"names = {list(names)!r}",
            *tokens,
            f"wired = wire(X, {plain!r}, {{{', '.join(written)}}}, tol={tol!r}, labels=names)",
            *(
                [
                    f"reading = self_attention({beta!r} * X, wired.Q, wired.K, wired.V)",
                    "for name, weights in zip(names, reading.weights):",
                    '    parts = [f"{other} ({float(w):.3g})" for other, w in zip(names, weights)]',
                    '    print(name, "reads", ", ".join(parts))',
                ]
                if possible
                else []
            ),
            "print(wired.certificate.worded(dict(enumerate(names))))",
            "",
        ]
    ).replace("import numpy as np\n\n\nfrom", "import numpy as np\n\nfrom")


def check(text: str, seconds: float) -> str:
    """Code that checks the claims of a text."""
    return "\n".join(
        [
            "from qkv import check",
            "",
            f"text = {_text(text)}",
            f"verdicts = check(text, seconds={seconds!r})",
            "for verdict in verdicts:",
            '    print(f"{verdict.verdict}: {verdict.says}")',
            '    print(f"    {verdict.because}")',
            "",
        ]
    )


def grade(text: str, problem: str | None, file: str) -> str:
    """Code that grades a sheet."""
    return "\n".join(
        [
            "from qkv.sheets import grade",
            "",
            f"text = {_text(text)}",
            f"feedback = grade(text, problem={problem!r}, file={file!r})",
            "print(feedback)",
            "for statement in feedback.statements:",
            '    print(f"{statement.line}: {statement.verdict}: {statement.formula}")',
            '    print(f"    {statement.because}")',
            "",
        ]
    )


def ask(folder: str, question: str, temporary: bool = False) -> str:
    """Code that asks a model; `temporary` says that its folder is removed when the server stops."""
    warning = "# This folder is removed when the server stops: keep the model on the page first."
    return "\n".join(
        [
            *([warning, ""] if temporary else []),
            "from qkv.knowledge import ask",
            "from qkv.train import load",
            "",
            f"run = load({folder!r})",
            f"answer = ask(run, {question!r})",
            'print(answer.answer or "(no answer)", f"({answer.badge})" if answer.badge else "")',
            "print(answer.why)",
            "for other in answer.alternatives:",
            '    print(f"{other.probability:.3f} {other.text}")',
            "",
        ]
    )


def head_survey(folder: str | None, text: str) -> str:
    """Code that looks at all heads of a model on a text; the built-in example if there is no folder."""
    return "\n".join([*_opened(folder), f"text = {_text(text)}", "survey = model.survey(text)", "print(survey)", ""])


def head_weights(folder: str | None, text: str, layer: int, head: int) -> str:
    """Code that computes what every token looks at, in one head."""
    return "\n".join(
        [
            *_opened(folder),
            f"text = {_text(text)}",
            "survey = model.survey(text)",
            f"weights = survey.weights({layer}, {head})  # row i: what token i looks at",
            "for token, row in zip(survey.tokens, weights):",
            "    best = int(row.argmax())",
            '    print(f"{token!r} looks most at {survey.tokens[best]!r}: {float(row[best]):.3f}")',
            "",
        ]
    )


def head_rounding(folder: str | None, text: str, layer: int, head: int, bits: Sequence[int]) -> str:
    """Code that rounds the keys of one head."""
    return "\n".join(
        [
            *_opened(folder),
            f"text = {_text(text)}",
            f"for row in model.survey(text).rounding({layer}, {head}, {tuple(bits)!r}):",
            '    print(f"{row.bits} bits: error {row.measured:.2%}, top item kept {row.survives:.0%}")',
            "",
        ]
    )


def head_view(folder: str | None, text: str, layer: int, head: int, token: int, bits: int, harden: bool) -> str:
    """Code that looks at one head from one token."""
    return "\n".join(
        [
            *_opened(folder),
            f"text = {_text(text)}",
            f"view = model.head({layer}, {head}).view(text, token={token}, bits={bits}, harden={harden})",
            "print(view)",
            "",
        ]
    )


def _opened(folder: str | None) -> list[str]:
    opened = "qkv.heads.example()" if folder is None else f"qkv.heads.open({folder!r})"
    return ["import qkv", "", f"model = {opened}"]


def _print_reading() -> list[str]:
    return [
        "for label, weight in zip(memory.labels, reading.weights):",
        '    print(f"weight of {label}: {float(weight):.4g}")',
        'print("output:", ", ".join(f"{float(x):.3g}" for x in reading.output))',
    ]


def _are_names(names: Sequence[str]) -> bool:
    """Whether all can be names of variables side by side."""
    usual = all(name.isascii() and name.isidentifier() and not keyword.iskeyword(name) for name in names)
    return usual and len(set(names)) == len(names) and not set(names) & set(TAKEN_NAMES)


def _sum(row: Sequence[float], vectors: Sequence[str]) -> str:
    """A sum of named vectors as an expression."""
    text = ""
    for coefficient, name in zip(row, vectors, strict=True):
        if coefficient:
            size = abs(float(coefficient))
            sign = (" - " if coefficient < 0 else " + ") if text else ("-" if coefficient < 0 else "")
            text += f"{sign}{name if size == 1 else f'{size!r} * {name}'}"
    return text or f"0 * {vectors[0]}"


def _text(text: str) -> str:
    """A string literal: over several lines where that is read back exactly."""
    plain = all(char.isprintable() or char == "\n" for char in text)
    if plain and "\n" in text and "'''" not in text and not text.endswith(("'", "\\")):
        return f"r'''{text}'''"
    return repr(text)


def _memory(keys: Any, values: Any, labels: Any) -> list[str]:
    return ["memory = Memory(", *_rows("keys", keys), *_rows("values", values), f"    labels={list(labels)!r},", ")"]


def _rows(name: str, rows: Sequence[Any]) -> list[str]:
    return [f"    {name}=[", *(f"        {_vector(row)}," for row in rows), "    ],"]


def _matrix(name: str, rows: Sequence[Any]) -> list[str]:
    return [f"{name} = np.array([", *(f"    {_vector(row)}," for row in rows), "])"]


def _vector(row: Sequence[Any]) -> str:
    return "[" + ", ".join(repr(float(x)) for x in row) + "]"
