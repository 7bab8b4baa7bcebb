"""One error for every refusal: what was asked, what came in, what to try."""

from __future__ import annotations


class QkvError(ValueError):
    """A request that qkv refuses; its message restates the call and says what would work."""

    def __init__(self, request: str, problem: str, hint: str) -> None:
        super().__init__(request, problem, hint)
        self.request = request
        self.problem = problem
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.request}: {self.problem}. {self.hint}."


class MissingExtra(QkvError):
    """A feature whose optional packages are not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            feature, f"the packages of the extra '{extra}' are missing", f'Run: pip install "qkv[{extra}]"'
        )
