"""Card and Displayable: terminal, HTML and JSON views of a result."""

from __future__ import annotations

import dataclasses
import html
import math
import re
from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rich.console import ConsoleRenderable

MAX_ARRAY_REPR = 120
"""Characters of an array in the repr of a result; longer ones are given by their shapes."""
MAX_VALUE_REPR = 400
"""Characters of any other value in the repr of a result; longer texts are cut, longer objects shown by their type."""
MAX_ENTRIES_REPR, SHOWN_ENTRIES = 12, 3
"""Entries of a list, tuple or mapping in the repr of a result; of longer ones, the first few are shown."""
TEXT_WIDTH = 100
"""Columns of `str(result)` where the terminal's width is not known."""


_NUMBER = re.compile(r"(?:(?:&lt;|&gt;|[≤≥±≈]) )?(?:1 − )?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?(?: (?:%|m?s\b|[kMG]B\b))?")


@dataclasses.dataclass(frozen=True)
class Card:
    """Content of the view of a result.

    Attributes:
        title: One line.
        facts: Pairs of name and value.
        columns: Column headers of the table.
        rows: Rows of the table.
        note: A closing remark.
    """

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    note: str = ""


class Displayable:
    """Base of results: `card()` defines the terminal and HTML views, the dataclass fields define the JSON."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__repr__" not in cls.__dict__:  # @dataclass leaves a __repr__ that the class already has
            cls.__repr__ = _one_line  # type: ignore[method-assign]

    def card(self) -> Card:
        """The content of the terminal and HTML views."""
        raise TypeError(f"{type(self).__name__} has no card")

    def to_json(self) -> dict[str, Any]:
        """The fields as plain lists, numbers and strings; fields with repr=False are left out."""
        assert dataclasses.is_dataclass(self)
        fields = dataclasses.fields(self)
        return {f.name: plain(getattr(self, f.name)) for f in fields if f.repr}

    def __rich__(self) -> ConsoleRenderable:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        card = self.card()
        parts: list[ConsoleRenderable] = [Text(card.title, style="bold")]
        if card.facts:
            grid = Table.grid(padding=(0, 2))
            grid.add_column(style="dim", overflow="fold")
            grid.add_column(overflow="fold")
            for name, value in card.facts:
                grid.add_row(Text(name), Text(value))
            parts.append(grid)
        if card.rows:
            table = Table(box=None, header_style="dim", pad_edge=False)
            for name in card.columns:
                table.add_column(Text(name), overflow="fold")
            for row in card.rows:
                table.add_row(*(Text(cell) for cell in row))
            parts.append(table)
        if card.note:
            parts.append(Text(card.note))
        return Group(*parts)

    def __str__(self) -> str:
        """The card as plain text, as wide as the terminal."""
        import io
        import shutil

        from rich.console import Console

        width = shutil.get_terminal_size((TEXT_WIDTH, 24)).columns
        console = Console(file=io.StringIO(), width=width, color_system=None, highlight=False)
        with console.capture() as text:
            console.print(self)
        return "\n".join(line.rstrip() for line in text.get().splitlines())

    def _repr_html_(self) -> str:
        card = self.card()
        esc = html_text
        facts = "".join(f"<dt>{esc(n)}</dt><dd>{esc(v)}</dd>" for n, v in card.facts)
        out = [f'<section class="qkv-card"><h3>{esc(card.title)}</h3>']
        if facts:
            out.append(f"<dl>{facts}</dl>")
        if card.rows:
            head = "".join(f"<th>{esc(c)}</th>" for c in card.columns)
            body = "".join("<tr>" + "".join(f"<td>{esc(c)}</td>" for c in r) + "</tr>" for r in card.rows)
            out.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        if card.note:
            out.append(f"<p>{esc(card.note)}</p>")
        return "".join(out) + "</section>"


def html_text(text: str) -> str:
    """A text as HTML, in which no line break divides a number.

    Example:
        >>> html_text("a < 3.5e-05")
        'a &lt; <span class="whole">3.5e-05</span>'
    """
    return number_spans(html.escape(text))


def number_spans(escaped: str) -> str:
    """The same for a text that is HTML already, without tags.

    Browsers break lines behind the hyphen of 3.5e-05, and at the spaces of 94 %, 5 s, < 0.01 and 1 − 3.5e-05.
    theme.css has the rule for the class, and static/lib/html.js does the same in the explorer.
    """
    return _NUMBER.sub(lambda m: f'<span class="whole">{m[0]}</span>' if re.search("e-| ", m[0]) else m[0], escaped)


def _one_line(result: Any) -> str:
    """The repr of a dataclass, on one line: long arrays are given by their shapes."""
    if not dataclasses.is_dataclass(result):
        return object.__repr__(result)
    shown = ", ".join(f"{f.name}={brief(getattr(result, f.name))}" for f in dataclasses.fields(result) if f.repr)
    return f"{type(result).__qualname__}({shown})"


def brief(value: Any) -> str:
    """repr(value) on one line of bounded length: shapes of long arrays, the first entries of long collections."""
    if isinstance(value, Mapping):
        return "{" + _listed([f"{k!r}: {brief(v)}" for k, v in _first(value.items(), len(value))], len(value)) + "}"
    if type(value) in (list, tuple):
        inner = _listed([brief(v) for v in _first(value, len(value))], len(value))
        inner += "," if type(value) is tuple and len(value) == 1 else ""
        return f"[{inner}]" if type(value) is list else f"({inner})"
    if isinstance(value, str) and len(value) > MAX_VALUE_REPR:
        return f"{value[: MAX_VALUE_REPR // 4]!r}… of {len(value):,} characters"
    text = repr(value)
    if hasattr(value, "shape") and ("\n" in text or len(text) > MAX_ARRAY_REPR):
        return f"<{type(value).__name__} of shape {tuple(value.shape)}>"
    if len(text) > MAX_VALUE_REPR and not isinstance(value, Displayable):
        return f"{type(value).__name__}(…)"
    return " ".join(text.split()) if "\n" in text else text


def _first(entries: Iterable[Any], n: int) -> Iterable[Any]:
    """All n entries, or the first few of many."""
    return islice(entries, n if n <= MAX_ENTRIES_REPR else SHOWN_ENTRIES)


def _listed(shown: list[str], n: int) -> str:
    return ", ".join(shown) + (f", … {n - len(shown):,} more" if n > len(shown) else "")


def plain(value: Any, *, words: bool = False) -> Any:
    """Tensors, arrays and dataclasses converted to JSON types.

    JSON has no NaN and no infinities: they become null or, with `words`, the strings "nan", "inf" and "-inf", which
    certificates and the explorer's pages use.
    """
    if isinstance(value, Displayable):
        return value.to_json()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name), words=words) for f in dataclasses.fields(value) if f.repr}
    if isinstance(value, Mapping):
        return {str(k): plain(v, words=words) for k, v in value.items()}
    if isinstance(value, str | bool | int | type(None)):
        return value
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else repr(float(value)) if words else None
    if isinstance(value, np.integer | np.bool_):
        return value.item()
    if hasattr(value, "tolist"):
        return plain(value.tolist(), words=words)
    if isinstance(value, Iterable):
        return [plain(v, words=words) for v in value]
    return str(value)


def number(x: float | int, digits: int = 4) -> str:
    """A number with the given significant digits, without an exponent where it can be avoided."""
    if x == 0 or not np.isfinite(x):
        return f"{x:g}"
    if 10**digits - 0.5 <= abs(x) < 1e6:
        return f"{x:.0f}"  # all digits before the point, rather than an exponent
    return f"{x:.{digits}g}" if 1e-4 <= abs(x) < 1e6 else f"{x:.{digits - 1}e}"


def times(x: float | int) -> str:
    """A ratio such as "3.14 times": three significant digits."""
    return f"{float(f'{x:.3g}'):,.0f} times" if 1000 <= x < 1e9 else f"{number(x, 3)} times"


def upper_bound(x: float | int, digits: int = 4) -> str:
    """`number(x, digits)`, rounded up: the number that is printed, read as float64, is never below x."""
    return _rounded(float(x), digits, ROUND_CEILING)


def lower_bound(x: float | int, digits: int = 4) -> str:
    """`number(x, digits)`, rounded down: the number that is printed, read as float64, is never above x."""
    return _rounded(float(x), digits, ROUND_FLOOR)


def lower_power_of_ten(x: float) -> str:
    """The largest power of ten that is not above x > 0, for large bounds whose digits are those of rounding."""
    return f"1e{Decimal(x).adjusted():+03d}" if math.isfinite(x) else number(x)


def known_to(x: float, error_bound: float) -> str:
    """`number(x)`; where x is not above its error, only what is known of it: "≤" the sum of both."""
    return number(x) if abs(x) > error_bound or not error_bound else f"≤ {upper_bound(abs(x) + error_bound, 2)}"


def _rounded(x: float, digits: int, rounding: str) -> str:
    """The text of `number`, with the last digit rounded in the given direction, in exact decimal arithmetic.

    A text that float64 reads as x itself stays: 0.001 is not printed as 0.001001 because its float64 lies a little
    above the decimal number.
    """
    if not math.isfinite(x) or float(number(x, digits)) == x:
        return number(x, digits)
    exact = Decimal(x)
    last = 0 if 10**digits - 0.5 <= abs(x) < 1e6 else exact.adjusted() - digits + 1
    shown = exact.quantize(Decimal(1).scaleb(last), rounding)
    if shown == 0 or Decimal("1e-4") <= abs(shown) < 10**6:
        return f"{shown.normalize():f}"
    mantissa, exponent = f"{shown:.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(exponent):+03d}"


def percent(share: float, decimals: int = 1) -> str:
    """A share such as "93.2 %". Only 1 itself is "100.0 %", and only 0 itself "0.0 %"."""
    shown = f"{_hundredfold(share):.{decimals}f}"
    if 0 < share < 1 and float(shown) in (0, 100):
        step = Decimal(1).scaleb(-decimals)
        return f"under {step} %" if share < 0.5 else f"over {100 - step} %"
    return f"{shown} %"


def percent_interval(low: float, high: float, decimals: int = 1) -> str:
    """An interval of shares, such as "98.8 to 99.9 %", rounded outwards; only 0 and 1 themselves are 0 and 100."""
    step = Decimal(1).scaleb(-decimals)
    down, up = (
        Decimal(repr(_hundredfold(share))).quantize(step, rounding)
        for share, rounding in ((low, ROUND_FLOOR), (high, ROUND_CEILING))
    )
    if high < 1 and up >= 100:
        return f"{down} to over {100 - step} %"
    return f"under {step} to {up} %" if low > 0 and down <= 0 else f"{down} to {up} %"


def probability_percent(p: float) -> str:
    """An estimated probability, such as "93 %", which is never said to be 0 or 1."""
    return percent(p, 0) if 0 < p < 1 else "under 1 %" if p <= 0 else "over 99 %"


def lower_percent(share: float, digits: int) -> str:
    """A share in percent with the given significant digits, rounded down: 0.57 is "57 %"."""
    return f"{lower_bound(_hundredfold(share), digits)} %"


def upper_percent(share: float, digits: int) -> str:
    """A share in percent with the given significant digits, rounded up."""
    return f"{upper_bound(_hundredfold(share), digits)} %"


def _hundredfold(share: float) -> float:
    """100·share by the decimal digits of the share: 57 for 0.57, where 100·0.57 is 56.99999999999999 in float64."""
    return float(100 * Decimal(repr(float(share))))


def power(x: float | int) -> str:
    """A small bound, rounded up to a power of ten: its digits come from rounding errors and differ between machines."""
    if not 0 < x < math.inf:
        return f"{x:g}"
    exponent = math.floor(math.log10(x))
    return next(text for e in range(exponent - 1, exponent + 3) if float(text := f"1e{e:+03d}") >= x)


def vector(values: Iterable[float | int], most: int = 8) -> str:
    """The first entries of a vector, and how many more there are."""
    entries = [float(v) for v in values]
    shown = ", ".join(number(v, 3) for v in entries[:most])
    more = f", … {len(entries) - most} more" if len(entries) > most else ""
    return f"({shown}{more})"
