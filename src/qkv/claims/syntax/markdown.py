"""Markdown to claims: fenced blocks, their lines, and one claim for every `then`."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, replace

from qkv.claims.syntax import nodes as L
from qkv.claims.syntax.latex import ascii_of
from qkv.claims.syntax.parser import Source, parse
from qkv.claims.syntax.rewriting import add_function, rewritten, with_calls, with_entries

MAX_DOCUMENT_LENGTH = 2_000_000  # characters
MAX_BLOCKS = 5000  # claim blocks of one document
MAX_BLOCK_LINES = 60
MAX_STATEMENTS = 30  # of one block
MAX_LINE_LENGTH = 2000
MAX_JOINED_LENGTH = 6000  # characters of one given, let or then with the lines that continue it
MAX_ID_LENGTH = 80


@dataclass(frozen=True)
class UnparsedClaim:
    """A claim that could not be parsed, and why."""

    id: str
    source: str
    why: L.Malformed

    def __post_init__(self) -> None:
        # The error is kept as a reason. After an import of Dask, all that an error came from is sent to another process
        # with it, and the errors of Lark hold modules, which cannot be sent.
        self.why.__traceback__ = self.why.__context__ = self.why.__cause__ = None


# An opening fence, perhaps behind the marks of quotes and lists; its info string may begin with claim in any case.
# No two parts that match blanks stand side by side, so that a line of blanks takes linear time.
_FENCE = re.compile(r"^((?:[ \t]*>)*[ \t]*(?:[-*+][ \t]+|\d{1,3}[.)][ \t]+)?)(`{3,}|~{3,})([^\n]*)$")


def read(text: str) -> list[L.Claim | UnparsedClaim]:
    """The claims of a document in their order; one that cannot be parsed becomes an UnparsedClaim.

    As in Markdown, a block ends with a fence of its own sign that is at least as long, so that a fence inside a longer
    one is text and no claim. A block in a quotation is a claim too, without the marks of the quotation. A document that
    is too long, or has too many blocks, is one UnparsedClaim.
    """
    if len(text) > MAX_DOCUMENT_LENGTH:
        return [_too_long(1, f"{len(text)} characters", f"at most {MAX_DOCUMENT_LENGTH} in one document")]
    found: list[L.Claim | UnparsedClaim] = []
    lines = [line.rstrip("\r") for line in text.removeprefix("\ufeff").split("\n")]
    index = seen = 0
    while index < len(lines):
        fence = _FENCE.match(lines[index])
        if fence is None or (fence[2][0] == "`" and "`" in fence[3]):
            index += 1
            continue
        quoted, info = fence[1].count(">"), fence[3].strip(" \t")
        close = re.compile(rf"^{QUOTE * quoted}[ \t]*{re.escape(fence[2][0])}{{{len(fence[2])},}}[ \t]*$")
        end = next((j for j in range(index + 1, len(lines)) if close.match(lines[j])), len(lines))
        word = re.match(r"claim(?![\w-])[ \t:]*", info, flags=re.IGNORECASE)
        if word is not None:
            seen += 1
            if seen > MAX_BLOCKS:
                return [_too_long(index + 1, f"more than {MAX_BLOCKS} claim blocks", "several documents")]
            name = info[word.end() :].strip()[:MAX_ID_LENGTH] or f"claim {seen}"
            body = [(j + 1, *_unquoted(lines[j], quoted)) for j in range(index + 1, end)]
            if end == len(lines):
                why = L.Malformed((index + 1, 1), "a block that is never closed", f"a line with {fence[2]}")
                found.append(UnparsedClaim(name, "", why))
            else:
                found += _block_or_unparsed(name, body, index + 1)
        index = end + 1
    return _distinct(found)


QUOTE = r"[ \t]*>"


def _too_long(line: int, came: str, expected: str) -> UnparsedClaim:
    """A document that is not read: its size is bounded, so that the time to read it is."""
    return UnparsedClaim("document", "", L.Malformed((line, 1), came, expected))


def _unquoted(line: str, depth: int) -> tuple[str, int]:
    """A line without the marks of its quotation, and how many characters they took."""
    marks = re.match(QUOTE * depth, line)
    start = marks.end() if marks is not None else 0
    return line[start:], start


def _distinct(found: list[L.Claim | UnparsedClaim]) -> list[L.Claim | UnparsedClaim]:
    """Number claims of the same name, so that every id is unique."""
    taken = {one.id for one in found}
    seen: set[str] = set()
    last: dict[str, int] = {}  # the last number that each name got
    out: list[L.Claim | UnparsedClaim] = []
    for one in found:
        name, number = one.id, last.get(one.id, 1)
        while name in seen or (number > 1 and name in taken):
            number += 1
            name = f"{one.id} ({number})"
        last[one.id] = number
        seen.add(name)
        out.append(one if name == one.id else replace(one, id=name))
    return out


Line = tuple[int, str, int]
"""The number of a line, its text, and the column before it."""


def _block_or_unparsed(name: str, body: list[Line], line: int) -> list[L.Claim | UnparsedClaim]:
    """Parse a block; a defect of the parser makes it an UnparsedClaim and leaves the rest of the document alone."""
    try:
        return block(name, body, line)
    except RecursionError:
        return [UnparsedClaim(name, "", L.Malformed((line, 1), "a formula that is nested too deeply", "simpler text"))]
    except Exception as why:
        came = f"a block that the parser failed on, which is a bug ({type(why).__name__})"
        return [UnparsedClaim(name, "", L.Malformed((line, 1), came, "simpler text"))]


def block(name: str, body: list[Line], line: int) -> list[L.Claim | UnparsedClaim]:
    """The claims of one fenced block."""
    source = "\n".join(text for _, text, _ in body)
    given: list[L.Given] = []
    lets: list[L.Let] = []
    thens: list[Source] = []
    functions: dict[str, L.FunctionLet] = {}
    try:
        clauses = _clauses(body, line)
        for part in (one for w, c in clauses if w == "given" for one in _joined(ascii_of(c).split())):
            given.append(parse(part, "given"))
        given = [with_entries(one, given) for one in given]
        for word, clause in clauses:
            if word == "let":
                for part in ascii_of(clause).split():
                    found = with_entries(parse(with_calls(part, functions, definition=True), "let"), given)
                    if isinstance(found, L.FunctionLet):
                        add_function(functions, found)
                    else:
                        lets.append(rewritten(found, given, lets, functions))
            elif word == "then":
                thens.append(clause)
        _require_no_calls([clause for word, clause in clauses if word == "given"], functions)
        if not thens:
            raise L.Malformed((line, 1), "a block without a statement", "a line that begins with then")
        if len(thens) > MAX_STATEMENTS:
            raise L.Malformed((line, 1), f"{len(thens)} statements", f"at most {MAX_STATEMENTS} in one block")
        given = [rewritten(one, given, lets, functions) for one in given]
    except L.Malformed as why:
        return [UnparsedClaim(name, source, why)]
    out: list[L.Claim | UnparsedClaim] = []
    for number, clause in enumerate(thens, 1):
        own = name if len(thens) == 1 else f"{name} #{number}"
        try:
            parsed = with_entries(parse(with_calls(ascii_of(clause), functions), "then"), given)
            statement = rewritten(parsed, given, lets, functions)
            out.append(L.Claim(own, tuple(given), tuple(lets), statement, source, statement.at, _written(clause)))
        except L.Malformed as why:
            out.append(UnparsedClaim(own, _written(clause), why))
    every = [node for c in out if isinstance(c, L.Claim) for node in L.nodes(c.statement)]
    moving = {node.name for node in every if isinstance(node, L.Approach)}
    moving |= {str(node.name) for node in every if isinstance(node, L.Never) and node.kind == "real"}
    return [replace(c, moving=tuple(sorted(moving))) if isinstance(c, L.Claim) else c for c in out]


def _require_no_calls(clauses: list[Source], functions: dict[str, L.FunctionLet]) -> None:
    """Refuse a function in a given, where its name would be read as a factor."""
    for clause in clauses:
        for name in functions:
            found = re.search(rf"(?<![A-Za-z_]){re.escape(name)}\s*\(", ascii_of(clause).text)
            if found is not None:
                raise L.Malformed(clause.where(0), f"{name}( in a given", "the formula itself in place of the function")


def _written(clause: Source) -> str:
    return " ".join(clause.text.split())


def _clauses(body: list[Line], line: int) -> list[tuple[str, Source]]:
    """Split a block into clauses: a line that does not begin with given, let or then continues the one before."""
    if len(body) > MAX_BLOCK_LINES:
        raise L.Malformed((line, 1), f"a block of {len(body)} lines", f"at most {MAX_BLOCK_LINES}")
    clauses: list[tuple[str, Source]] = []
    for number, text, before_it in body:
        bare = re.sub(r"(^|\s)#.*$", "", text)
        if not bare.strip():
            continue
        places = [(number, before_it + column + 1) for column in range(len(bare))]
        if len(bare) > MAX_LINE_LENGTH:
            raise L.Malformed((number, 1), f"a line of {len(bare)} characters", f"at most {MAX_LINE_LENGTH}")
        found = re.match(r"^\s*(given|let|then)\b", bare)
        if found is not None:
            clauses.append((found[1], Source(bare, places)[found.end() : len(bare)]))
        elif not clauses:
            at = (number, before_it + len(bare) - len(bare.lstrip()) + 1)
            raise L.Malformed(at, f"'{bare.split()[0][:30]}'", "given, let or then")
        else:
            word, before = clauses[-1]
            more = Source(" " + bare, [(number, 1), *places])
            if len(before.text) + len(more.text) > MAX_JOINED_LENGTH:
                came = f"a {word} of more than {MAX_JOINED_LENGTH} characters"
                raise L.Malformed((number, before_it + 1), came, f"several lines that begin with {word}")
            clauses[-1] = (word, Source(before.text + more.text, before.at + more.at))
    return clauses


def _joined(parts: list[Source]) -> list[Source]:
    """Join names without a predicate to the next part: `u_a, u_b orthonormal` is one declaration."""
    out: list[Source] = []
    held: list[Source] = []
    for part in parts:
        held.append(part)
        bare = part.text.strip()
        if not (re.fullmatch(r"[\s\w{},.]*", bare) and not re.search(r"\w\s+\w", bare.replace(",", ";"))):
            out.append(_with_commas(held))
            held = []
    return [*out, _with_commas(held)] if held else out


def _with_commas(parts: list[Source]) -> Source:
    """Parts of a clause as one source, with the commas between them again."""
    at: list[L.At] = list(parts[0].at)
    for before, part in itertools.pairwise(parts):
        at += [before.where(len(before.text)), *part.at]
    return Source(",".join(part.text for part in parts), at)
