"""Linear probes of a name: is it that of somebody real, and which country does it point to?

They need no answers, so that they are fitted on many more names than a badge is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

from qkv.knowledge.confidence.logistic import LogisticModel, fit
from qkv.knowledge.datasets.accepted_names import accepted_forms, forms_of_answer
from qkv.knowledge.datasets.facts import Facts, Person
from qkv.knowledge.datasets.pantheon import pantheon
from qkv.knowledge.language_models.prompts import example_people
from qkv.knowledge.language_models.signals import NameSignals, SignalReader, invented_names

NAMES_PER_PERSON, MIN_NAMES, MAX_NAMES = 2, 200, 1500  # real names to fit on for each person asked about
NAMES_PER_STEP = 128
N_COMPONENTS = 64  # principal components of the hidden states; with more, the probe is worse on other names
REAL_RIDGE = 20.0
MIN_PEOPLE = 8  # of a country that is told from the others
COUNTRY_RIDGE = 5.0  # added to the variance of each standardised hidden state
SHRINKAGE = 2.0  # people with the mean of all that are added to each country
LEAST_LOG = -12.0
OTHER = ""


@dataclass(frozen=True, eq=False)
class CountryProbe:
    """Linear discriminants between countries of birth, from the hidden state of a name.

    Attributes:
        countries: The countries; the last, "", is any other.
        mean: Mean of each hidden state.
        scale: Standard deviation of each.
        weights: (width, countries).
        bias: (countries,).
    """

    countries: tuple[str, ...]
    mean: np.ndarray
    scale: np.ndarray
    weights: np.ndarray
    bias: np.ndarray

    def log_probabilities(self, hidden: np.ndarray) -> np.ndarray:
        """(n, countries): the log-probability of each country for hidden states (n, width)."""
        scores = (hidden - self.mean) / self.scale @ self.weights + self.bias
        return np.asarray(scores - np.logaddexp.reduce(scores, axis=1)[:, None])

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` is its inverse."""
        arrays = {name: getattr(self, name).tolist() for name in ("mean", "scale", "weights", "bias")}
        return {"countries": list(self.countries), **arrays}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> CountryProbe:
        """A probe from its data; what does not fit together is refused with ValueError, KeyError or TypeError."""
        countries = tuple(str(each) for each in data["countries"])
        mean, scale, weights, bias = (np.array(data[k], dtype=float) for k in ("mean", "scale", "weights", "bias"))
        shapes = (mean.shape, scale.shape, weights.shape, bias.shape)
        width, n = mean.size, len(countries)
        finite = all(np.isfinite(each).all() for each in (mean, scale, weights, bias))
        if shapes != ((width,), (width,), (width, n), (n,)) or not finite or not (scale > 0).all():
            raise ValueError("the weights of a probe do not fit together")
        return cls(countries, mean, scale, weights, bias)


@dataclass(frozen=True, eq=False)
class NameProbes:
    """The probes of one model.

    Attributes:
        real: Log-odds that a name is real and not invented, from the rows of `name_inputs`.
        country: The country that a name points to; None where it was not fitted.
    """

    real: LogisticModel
    country: CountryProbe | None

    def fits(self, answers: Sequence[str], relation: str, late_hidden: np.ndarray) -> np.ndarray:
        """The log-probability of each answer's country for its name; 0 where answers have no country."""
        if self.country is None or relation not in ("city", "country"):
            return np.zeros(len(answers))
        logs = self.country.log_probabilities(late_hidden)
        index = {country: i for i, country in enumerate(self.country.countries)}
        own = [index.get(country_of(answer, relation), index[OTHER]) for answer in answers]
        return np.maximum(logs[np.arange(len(own)), own], LEAST_LOG)

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` is its inverse."""
        return {"real": asdict(self.real), "country": None if self.country is None else self.country.to_json()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> NameProbes:
        """Probes from their data."""
        country = data["country"]
        made = None if country is None else CountryProbe.from_json(country)
        return cls(LogisticModel.from_json(data["real"]), made)


def name_inputs(signals: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Rows of the probe for real names: NAME_SIGNALS of each name, and its hidden state in the middle layer."""
    return np.hstack((signals, hidden))


def read_name_probes(
    reader: SignalReader,
    n_asked: int,
    asked: frozenset[str],
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> NameProbes:
    """Probes fitted on people of the shipped table who are not asked about, and on as many invented names.

    Args:
        reader: Reads signals of names.
        n_asked: Number of people asked about; the probes are fitted on twice as many, within limits.
        asked: Their names, and those of invented people, which are left out.
        seed: Seed of the choice of people, and of invented names.
        progress: Called with names done and in all.
    """
    left_out = asked | example_people() | set(invented_names())
    able = [person for person in pantheon() if person.name not in left_out]
    n = min(max(MIN_NAMES, NAMES_PER_PERSON * n_asked), MAX_NAMES, len(able))
    people = [able[i] for i in np.random.default_rng((seed, 83)).permutation(len(able))[:n]]
    taken = {person.name for person in pantheon()} | left_out
    made = [name for name in Facts(tuple(people)).invented_names(n, seed) if name not in taken]
    names, rows = [*(person.name for person in people), *made], list[NameSignals]()
    for start in range(0, len(names), NAMES_PER_STEP):
        rows += reader.read_names(names[start : start + NAMES_PER_STEP], n_contexts=1)
        progress(len(rows), len(names))
    return fit_name_probes(people, rows[: len(people)], rows[len(people) :])


def fit_name_probes(
    people: Sequence[Person], real: Sequence[NameSignals], invented: Sequence[NameSignals]
) -> NameProbes:
    """Probes from the signals of real people's names and of invented names.

    Invented names have two words or more; real names of one word would be told by that alone, and are left out.
    """
    several = [one for person, one in zip(people, real, strict=True) if " " in person.name]
    rows = [*several, *invented]
    is_real = np.arange(len(rows)) < len(several)
    signals, hidden = np.stack([one.signals for one in rows]), np.stack([one.hidden[0] for one in rows])
    late = np.stack([one.hidden[1] for one in real])
    return NameProbes(fit_real(signals, hidden, is_real), fit_country([p.country for p in people], late))


def fit_real(signals: np.ndarray, hidden: np.ndarray, is_real: np.ndarray) -> LogisticModel:
    """A logistic model of signals and of the principal components of hidden states, written as one of the states."""
    mean, scale = hidden.mean(0), np.maximum(hidden.std(0), 1e-6)
    z = (hidden - mean) / scale
    _, vectors = np.linalg.eigh(z.T @ z)
    project = vectors[:, ::-1][:, :N_COMPONENTS]
    model = fit(np.hstack((signals, z @ project)), is_real.astype(float), REAL_RIDGE)
    k = signals.shape[1]
    slopes, centres = np.array(model.weights) / np.array(model.scale), np.array(model.mean)
    weights = np.concatenate((slopes[:k], project @ slopes[k:]))
    bias = model.bias - float(slopes[k:] @ centres[k:])
    return LogisticModel(
        (*centres[:k].tolist(), *mean.tolist()), (*(1.0,) * k, *scale.tolist()), tuple(weights.tolist()), bias
    )


def fit_country(countries: Sequence[str], hidden: np.ndarray) -> CountryProbe | None:
    """Regularised linear discriminant analysis of countries with enough people; None if there are fewer than two."""
    counts = Counter(each for each in countries if each)
    labels = [country for country, n in counts.most_common() if n >= MIN_PEOPLE]
    if len(labels) < 2:
        return None
    own = np.array([labels.index(each) if each in labels else len(labels) for each in countries])
    mean, scale = hidden.mean(0), np.maximum(hidden.std(0), 1e-6)
    z = (hidden - mean) / scale
    n = np.bincount(own, minlength=len(labels) + 1)
    centres = np.stack([z[own == i].sum(0) / (n[i] + SHRINKAGE) for i in range(len(n))])
    rest = z - centres[own]
    covariance = rest.T @ rest / len(z) + COUNTRY_RIDGE * np.eye(z.shape[1])
    weights = np.linalg.solve(covariance, centres.T)
    bias = -0.5 * (centres.T * weights).sum(0) + np.log((n + 0.5) / (n.sum() + 0.5 * len(n)))
    return CountryProbe((*labels, OTHER), mean, scale, weights, bias)


def country_of(answer: str, relation: str) -> str:
    """The country of the shipped table that an answer names, or in which most people of that city were born; or ""."""
    forms, found = _countries(relation), Counter[str]()
    for form in forms_of_answer(answer, relation):
        found.update(forms.get(form, {}))
    return found.most_common(1)[0][0] if found else OTHER


@cache
def _countries(relation: str) -> dict[str, Counter[str]]:
    """How many people of each country have a value that is accepted in this form."""
    pairs = Counter((str(getattr(person, relation)), person.country) for person in pantheon())
    out: dict[str, Counter[str]] = {}
    for (value, country), n in pairs.items():
        for form in accepted_forms(value, relation):
            out.setdefault(form, Counter())[country] += n
    return out
