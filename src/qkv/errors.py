"""QkvError, MissingExtra and QkvWarning: every refusal names the request, the problem and a hint."""

from __future__ import annotations

from typing import Any


class QkvError(ValueError):
    """A request that qkv refuses, with the reason and a way out.

    Errors can be pickled, so they cross process boundaries unchanged.

    Args:
        request: What was asked for, such as "attending with 2 heads".
        problem: What is wrong with it, such as "the mask has shape (3, 4)".
        hint: What to do instead, as an imperative sentence without its full stop.

    Attributes:
        request: As given.
        problem: As given.
        hint: As given.

    Example:
        >>> import qkv
        >>> try:
        ...     qkv.Memory([[1.0, 0.0]], labels=["a", "b"])
        ... except qkv.QkvError as error:
        ...     print(error.problem)
        there are 1 keys and 2 labels
    """

    def __init__(self, request: str, problem: str, hint: str) -> None:
        # One line each, whatever was put into them: the repr of an array has several.
        request, problem, hint = (" ".join(part.split()) if "\n" in part else part for part in (request, problem, hint))
        super().__init__(request, problem, hint)
        self.request = request
        self.problem = problem
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.request}: {with_full_stop(self.problem)} {with_full_stop(self.hint)}"

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are pickled as "call the class with self.args", which fails for subclasses whose __init__ takes
        # other arguments than QkvError's three. Their state is restored instead, without calling __init__.
        return _restored, (type(self), self.args), vars(self)


def with_full_stop(text: str) -> str:
    """A text as the end of a sentence: a full stop is added, unless it ends like a sentence already.

    Questions, names and answers that are quoted without quotation marks may end in a mark of their own.

    Example:
        >>> with_full_stop("Ask, like: Where was Ada Lovelace born?"), with_full_stop("They answer Rome")
        ('Ask, like: Where was Ada Lovelace born?', 'They answer Rome.')
    """
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."


def kind_of(value: Any) -> str:
    """What a value is, with its article, for a message.

    Example:
        >>> kind_of(3), kind_of([]), kind_of(None)
        ('an int', 'a list', 'None')
    """
    name = type(value).__name__
    an = name[0] in "aeioAEIO" or name == "ndarray"
    return "None" if value is None else f"{'an' if an else 'a'} {name}"


EXTRAS = {
    "cluster": ("dask[distributed]>=2024.5",),
    "web": ("fastapi>=0.115,<1", "uvicorn>=0.30,<1", "markdown-it-py>=2.2,<5"),
    "hf": ("transformers>=4.56,<6", "tensorboard>=2.16,<3"),
    "models": ("transformers>=4.56,<6", "gguf>=0.10", "accelerate>=0.30"),
}
"""The packages of each extra, as in pyproject.toml (a test compares them)."""


class MissingExtra(QkvError):
    """A feature whose optional packages are not installed.

    The hint installs the packages themselves, which works whether qkv came from an index, a wheel or a clone: pip finds
    `qkv[web]` on an index only, and `.[web]` in a clone only.

    Args:
        feature: What was asked for.
        extra: The extra of the distribution qkv that holds the missing packages.
    """

    def __init__(self, feature: str, extra: str) -> None:
        packages = " ".join(f'"{package}"' for package in EXTRAS.get(extra, (f"qkv[{extra}]",)))
        problem = f"the packages of the extra '{extra}' are missing"
        super().__init__(feature, problem, f"Run: python -m pip install {packages}")


class QkvWarning(UserWarning):
    """Something that a caller should know although the call went on, such as damaged lines that were left out."""


def _restored(kind: type[QkvError], args: tuple[Any, ...]) -> QkvError:
    error = kind.__new__(kind, *args)
    error.args = args
    return error


def refuse_negative(request: str, **values: int) -> None:
    """Refuse numbers below 0, such as a seed, by the names that they are given as. It needs no other module."""
    for name, value in values.items():
        if value < 0:
            raise QkvError(request, f"{name} is {value}", "Give a whole number, 0 or more")
