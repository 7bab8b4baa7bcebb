"""The occupations that an answer names: "German politician and lawyer" names politician and lawyer."""

from __future__ import annotations

import re
from functools import cache

from qkv.knowledge.datasets.other_names import forms_of_name, other_names, same_name
from qkv.knowledge.datasets.pantheon import pantheon

MAX_NAMED = 3  # of a longer list, the first count: it would name everything
_APPOSITION = re.compile(
    r"\b(?:who|whose|whom|that|which|from|in|of|for|at|with|by|on|known|born|during|under|best|until|since|to|as|after|"
    r"before|because|when|where|while)\b.*",
    re.IGNORECASE | re.DOTALL,
)
_BETWEEN = re.compile(r"[,;/&]|\band\b", re.IGNORECASE)
_OTHER_KINDS = {  # words before the last one that make it another occupation
    "architect": "software|solution|data",
    "actor": "adult|porn",
    "actress": "adult|porn",
    "artist": "martial|comic|comics|book|manga|recording|makeup|up|con|rap|hop|trapeze|escape|tattoo",
    "coach": "voice|vocal|life|acting|drama|stage",
    "conductor": "train|bus|tram|railway|railroad",
    "director": "bank|art|music|musical|casting|managing|executive|athletic|creative|technical|company|funeral|choir|"
    "sporting|theatre|theater|stage|opera|orchestra|symphony|news|medical|artistic|finance|marketing",
    "doctor": "witch|spin",
    "footballer": "rules|gaelic|rugby",
    "general": "attorney|governor|secretary|surgeon|solicitor|director|postmaster|auditor|inspector|consul|advocate|"
    "procurator|vicar|minister|superior",
    "host": "party",
    "goalkeeper": "hockey|handball|lacrosse|polo|hurling",
    "manager": "campaign|talent|restaurant|bank|project|hotel|stage|fund|store|product|office|sales|business|general",
    "midfielder": "hockey|lacrosse",
    "model": "role",
    "officer": "police|executive|petty|probation",
    "painter": "house",
    "player": "table|rules|gaelic|rugby|college",
    "queen": "beauty|drag|pageant",
    "president": "company|bank|club|university|college",
    "racer": "ski|alpine|bicycle|cycle|sled|horse|road",
    "runner": "front|blockade|gun|rum",
    "skier": "water|jet",
    "striker": "hunger|match",
    "writer": "song",
}
_OF_OTHERS = {  # what follows "of" (or "for", "at") and makes it another occupation
    "director": r"(?!film|movie|documentar|motion|photograph)",
    "doctor": r"(?!medicine|medical|internal)",
    "governor": r"the bank|the central bank|the reserve",
    "king": r"pop|rock|soul|comedy|blues|swing|jazz|reggae",
    "manager": r"(?:the |a |an )?(?:bank|store|hotel|restaurant|fund|company|project|band)",
    "president": r"(?:the |a |an )?(?:fifa|uefa|apple|ioc|nba|bank|company|club|university|college|society)",
    "queen": r"pop|rock|soul|comedy|blues|swing|jazz|reggae|hearts",
}
_NOT_REALLY = frozenset(["fictional", "imaginary", "aspiring", "failed", "pseudo", "wannabe"])


def stated_occupations(answer: str, also: str = "") -> frozenset[str]:
    """The known occupations that an answer names, as `same_name` writes them: the first three of a list.

    What goes before an occupation does not change it ("theoretical physicist"), unless the whole is another one
    ("computer scientist", "martial artist", "attorney general"); what follows it ("of the United States") is left out.
    `also` is one more occupation to look for, as `same_name` writes it.
    """
    known = _known() | ({also} - {""})
    before = re.sub(r"\([^()]*\)", " ", answer)
    parts = [part for part in _BETWEEN.split(before) if part.strip()][:MAX_NAMED]
    whole = [name for part in parts if (name := same_name(part)) in known]  # "member of parliament"
    found = [name for part in parts if (name := _named_last(same_name(_APPOSITION.sub("", part)), part, known))]
    return frozenset((*whole, *found))


def _named_last(text: str, part: str, known: frozenset[str]) -> str:
    """The longest known occupation at the end of a text; "" if there is none, or if it is of another kind.

    `part` is the text with what follows it.
    """
    words = text.split()
    of = _OF_OTHERS.get(words[-1], "") if words else ""
    if of and re.search(rf"\b{words[-1]}\s+(?:of|for|at)\s+(?:the\s+)?(?:{of})", part, re.IGNORECASE):
        return ""
    for i in range(len(words)):
        name = " ".join(words[i:])
        if name in known:
            other = _OTHER_KINDS.get(words[-1], "").split("|")
            return "" if {*words[:i]} & {*other, *_NOT_REALLY} else name
    return ""


@cache
def _known() -> frozenset[str]:
    """The occupations of the shipped table, and their other names."""
    values = {person.occupation for person in pantheon()} | set(other_names("occupation"))
    return frozenset(form for value in values - {""} for form in forms_of_name(value, "occupation"))
