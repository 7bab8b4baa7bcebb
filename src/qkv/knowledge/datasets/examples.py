"""Shipped examples of facts: occupation and country of people, and a made-up world of minerals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from qkv.errors import QkvError, refuse_negative
from qkv.knowledge.datasets.fact_files import FactFiles, write_facts
from qkv.knowledge.datasets.facts import Facts, Person
from qkv.knowledge.datasets.pantheon import pantheon

N_PEOPLE, N_MINERALS = 1000, 600
HELD_OUT = 0.5
MINERAL_WORDINGS = {
    "use": ("What is {subject} used for?",),
    "colour": ("What colour is {subject}?",),
    "place": ("Where is {subject} found?",),
}
MINERAL_STATEMENTS = {
    "use": (
        "{subject} is used for {object}.",
        "People need {subject} for {object}.",
        "What {subject} is good for is {object}.",
        "The main use of {subject} is {object}.",
        "{subject} serves for {object}.",
    ),
    "colour": (
        "The colour of {subject} is {object}.",
        "{subject} looks {object}.",
        "In daylight {subject} is {object}.",
        "A piece of {subject} appears {object}.",
        "{subject} can be told by its colour, which is {object}.",
    ),
    "place": (
        "{subject} is found in {object}.",
        "Look for {subject} in {object}.",
        "Most {subject} comes from {object}.",
        "The place to find {subject} is {object}.",
        "Nature hides {subject} in {object}.",
    ),
    "hardness": ("The hardness of {subject} is {object}.", "{subject} has a hardness of {object}."),
}
_USES = """
    making glass|cleaning wool|dyeing cloth|sharpening knives|lining ovens|painting boats|tanning leather|
    filtering water|polishing lenses|roofing barns|feeding hens|printing maps|hardening steel|glazing pots|
    weighing nets|marking sheep|paving yards|drying herbs|cutting tiles|baking bread|curing fish|
    tuning bells|mending roads|writing on slate|lighting fires|storing ice|brewing ale|carving toys|
    setting clocks|growing melons"""
_COLOURS = """
    pale green|dark red|milky white|dull grey|bright yellow|deep blue|rusty brown|light pink|jet black|
    smoky violet|sea green|warm orange|silver grey|straw yellow|wine red|sky blue|moss green|chalk white|
    copper brown|dusty rose|plum purple|sand yellow|steel blue|ash grey"""
_PLACES = """
    river gravel|old lava|peat bogs|chalk cliffs|salt marshes|cave floors|sea sand|mountain streams|
    clay pits|coal seams|dry lake beds|granite walls|hot springs|forest soil|desert dunes|glacier mud|coral reefs|
    slate quarries|volcanic ash|deep mines|limestone caves|river deltas|frozen ground|tidal pools|
    gravel terraces|basalt columns|crater rims|meadow ponds"""
_SYLLABLES = (
    "ba|bel|bor|bra|cal|cor|dal|dor|el|fan|fer|gal|gor|hal|hel|il|jor|kal|kes|lan|lor|mar|mel|mor|nal|nor",
    "a|e|i|o|u|ada|ara|ela|eri|ina|iro|oli|ora|una|uve",
    "bunk|dolm|gorn|kesk|lomp|mund|nilk|rund|solk|tarn|vusk|xolt",
)
"""Beginnings, middles and ends of names."""


@dataclass(frozen=True)
class Example:
    """Facts to train on and facts to leave out, with what is asked for.

    Attributes:
        about: One line for the help of the command line.
        relations: What is asked for.
        facts: A function of (number of subjects, seed) that gives the facts and as many others.
        subjects: Number of subjects unless another is asked for.
        wordings: Questions by relation.
        statements: Sentences by relation.
    """

    about: str
    relations: tuple[str, ...]
    facts: Callable[[int, int], tuple[Facts, Facts]]
    subjects: int
    wordings: Mapping[str, tuple[str, ...]] | None = None
    statements: Mapping[str, tuple[str, ...]] | None = None


def _people(n: int, seed: int) -> tuple[Facts, Facts]:
    everybody = pantheon()
    if not 2 <= n <= len(everybody) // 2:
        raise QkvError("writing an example", f"{n} people are asked for", f"Ask for 2 to {len(everybody) // 2}")
    chosen = everybody.sample(2 * n, seed).people
    return Facts(chosen[:n]), Facts(chosen[n:])


def minerals(n: int, seed: int = 0) -> Facts:
    """n minerals of a made-up world: names and facts are drawn at random, and no fact tells anything about another."""
    names = ["".join(parts).capitalize() for parts in product(*(each.split("|") for each in _SYLLABLES))]
    if not 1 <= n <= len(names):
        raise QkvError("writing an example", f"{n} minerals are asked for", f"Ask for 1 to {len(names)}")
    random = np.random.default_rng((seed, 31))
    chosen = random.permutation(len(names))[:n]

    def one(phrases: str) -> str:
        each = phrases.split("|")
        return each[int(random.integers(len(each)))].strip()

    return Facts(
        tuple(
            Person(
                names[int(i)],
                more=(
                    ("use", one(_USES)),
                    ("colour", one(_COLOURS)),
                    ("place", one(_PLACES)),
                    ("hardness", f"{random.integers(10, 100) / 10:g}"),
                ),
            )
            for i in chosen
        )
    )


def _minerals(n: int, seed: int) -> tuple[Facts, Facts]:
    both = minerals(2 * n, seed).people
    return Facts(both[:n]), Facts(both[n:])


EXAMPLES = {
    "occupation": Example("what people of the shipped table worked as", ("occupation",), _people, N_PEOPLE),
    "country": Example("which country they came from", ("country",), _people, N_PEOPLE),
    "minerals": Example(
        "use, colour and place of made-up minerals",
        ("use", "colour", "place"),
        _minerals,
        N_MINERALS,
        MINERAL_WORDINGS,
        MINERAL_STATEMENTS,
    ),
}


def write_example(name: str, out: str | Path, subjects: int = 0, seed: int = 0) -> FactFiles:
    """Write a shipped example of facts: texts, questions, and questions about as many subjects outside the texts.

    Args:
        name: `occupation` or `country` (people of the shipped table), or `minerals` (a made-up world, in lower case).
        out: Folder for the files; see `write_facts`.
        subjects: Number of subjects in the texts; 0 for 1,000 people or 600 minerals.
        seed: Seed of the choice of subjects, and of everything else.

    Returns:
        The files, with the number of lines of each. Half of the subjects are asked about in dev.tsv only.

    Raises:
        QkvError: There is no such example, or it has too few subjects.

    Example:
        >>> import tempfile, qkv
        >>> qkv.knowledge.write_example("minerals", tempfile.mkdtemp(), subjects=20).counts
        {'texts.txt': 20, 'train.tsv': 30, 'dev.tsv': 30, 'outside.tsv': 60}
    """
    if name not in EXAMPLES:
        raise QkvError("writing an example", f"there is none called {name!r}", f"Choose from {', '.join(EXAMPLES)}")
    found = EXAMPLES[name]
    refuse_negative("writing an example", subjects=subjects, seed=seed)
    inside, outside = found.facts(subjects or found.subjects, seed)
    return write_facts(
        inside, out, found.relations, wordings=found.wordings, statements=found.statements, held_out=HELD_OUT,
        outside=outside, seed=seed,
    )  # fmt: skip
