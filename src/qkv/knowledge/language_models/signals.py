"""Signals of how well a language model knows the answer that it gives, computed for many questions at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np

from qkv.knowledge.datasets.other_names import same_name
from qkv.knowledge.datasets.pantheon import pantheon
from qkv.knowledge.language_models.causal_model import CausalModel, Generated, Scored
from qkv.knowledge.language_models.prompts import NAME_CONTEXTS, REVERSED, Question, Way, about, ways

SIGNALS = {
    "log_probability": "log-probability of the answer and its end",
    "mean_log_probability": "the same for each token, on average",
    "margin": "log-probability of the answer's first token minus that of the next likeliest",
    "entropy": "entropy of the next token, summed over the answer and its end",
    "agreement": "share of the other ways of asking (other examples, other wording) that give the same answer",
    "other_ways": "log-probability of the answer in the other ways of asking, on average",
    "movement": "how far the log-probability of the answer differs between the ways of asking (standard deviation)",
    "nobody": "log-probability of the answer for invented names, on average: how common a guess it is",
    "contrast": "log-probability of the answer for this name minus that for invented names",
    "name_log_probability": "log-probability of the name's tokens, on average",
    "name_least": "the least of these",
    "name_bond": "log-probability of the name's last word after its first words minus that after other first names",
    "bond_among_famous": "the same in a list of famous people",
    "name_given_answer": "log-probability of the name in a list of people that the answer fits, minus that without it",
    "copied": "1 if the answer is that of an example, 0 if not",
}
"""The signals and their meanings, in the order of the columns of `Signals.values`."""
NAME_SIGNALS = ("name_log_probability", "name_least", "name_bond")
"""The signals of a name that do not depend on what is asked."""
MAX_ANSWER_TOKENS = 10
N_INVENTED, N_FIRST_NAMES = 4, 3
INVENTED_SEED = 71
TOP_FIRST_TOKENS = 5
NOBODY = "somebody"  # stands for the name where a question has none


class NameSignals(NamedTuple):
    """What a model makes of a name.

    Attributes:
        logs: Log-probability of each token of it in the first context.
        bonds: How much likelier its last word is after its first words than after other first names (difference of
            log-probabilities), in each context that was read.
        hidden: (2, width): hidden state at its end, in the middle layer and at three quarters of the layers.
    """

    logs: np.ndarray
    bonds: tuple[float, ...]
    hidden: np.ndarray

    @property
    def signals(self) -> np.ndarray:
        """The values of NAME_SIGNALS."""
        return np.array([self.logs.mean(), self.logs.min(), self.bonds[0]])


@dataclass(frozen=True, eq=False)
class Signals:
    """Answers of a model to questions, with the signals of each.

    Attributes:
        questions: The questions.
        answers: The answer to each.
        tokens: The answers as tokens.
        ended: Whether each answer ended by itself.
        first: The likeliest first tokens of each answer with their log-probabilities.
        values: (questions, signals), columns in the order of SIGNALS.
        hidden: (questions, 2·width): hidden states at the end of the name in two layers (`NameSignals`), side by side.
    """

    questions: tuple[Question, ...]
    answers: tuple[str, ...]
    tokens: tuple[tuple[int, ...], ...]
    ended: tuple[bool, ...]
    first: tuple[tuple[tuple[int, float], ...], ...]
    values: np.ndarray
    hidden: np.ndarray

    def not_empty(self, expected: Sequence[str]) -> tuple[Signals, list[str]]:
        """The questions that have an answer, with what is expected of them; an empty answer has no badge."""
        rows = [i for i, answer in enumerate(self.answers) if answer]
        found = Signals(
            tuple(self.questions[i] for i in rows),
            tuple(self.answers[i] for i in rows),
            tuple(self.tokens[i] for i in rows),
            tuple(self.ended[i] for i in rows),
            tuple(self.first[i] for i in rows),
            self.values[rows],
            self.hidden[rows],
        )
        return found, [expected[i] for i in rows]

    def column(self, signal: str) -> np.ndarray:
        """One signal of all answers."""
        return self.values[:, list(SIGNALS).index(signal)]

    @property
    def name_values(self) -> np.ndarray:
        """(questions, NAME_SIGNALS): the signals of the names."""
        return np.column_stack([self.column(signal) for signal in NAME_SIGNALS])

    @property
    def middle_hidden(self) -> np.ndarray:
        """(questions, width): the hidden states of the middle layer."""
        return self.hidden[:, : self.hidden.shape[1] // 2]

    @property
    def late_hidden(self) -> np.ndarray:
        """(questions, width): those at three quarters of the layers."""
        return self.hidden[:, self.hidden.shape[1] // 2 :]


@dataclass(eq=False)
class SignalReader:
    """Computes signals of one model for one relation, and remembers what questions have in common.

    Attributes:
        model: The model.
        relation: What the questions ask for; "" for any other question.
    """

    model: CausalModel
    relation: str
    _nobody: dict[tuple[int, ...], float] = field(default_factory=dict, repr=False)
    _names: dict[str, NameSignals] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.ways: tuple[Way, ...] = ways(self.model, self.relation)

    @property
    def name_layers(self) -> tuple[int, int]:
        """The hidden states at the end of the name are taken here: in the middle, and at three quarters."""
        return self.model.layers // 2, min(round(0.775 * self.model.layers), self.model.layers - 1)

    def read(self, questions: Sequence[Question]) -> Signals:
        """Answer questions greedily, and compute the signals of each answer."""
        model = self.model
        prompts = [self.prompt(question) for question in questions]
        found = model.generate(prompts, MAX_ANSWER_TOKENS, top=TOP_FIRST_TOKENS)
        texts = [answer_text(model, one.tokens) for one in found]
        answers = [one.tokens for one in found]
        main = np.array([one.log_probability for one in found])
        others, agreement = self._other_ways(questions, answers)
        nobody = np.array(self._nobody_logs(answers))
        names = self.read_names([question.name for question in questions])
        every = np.vstack((main, others)) if len(others) else main[None]
        values = np.stack(
            [
                main,
                main / np.array([len(tokens) + 1 for tokens in answers]),
                np.array([_margin(one) for one in found]),
                np.array([sum(one.entropies) for one in found]),
                agreement,
                every[1:].mean(0) if len(others) else main,
                every.std(0),
                nobody,
                main - nobody,
                *np.stack([name.signals for name in names]).T,
                np.array([name.bonds[1] for name in names]),
                self._name_given_answer(questions, texts),
                np.array([float(self._is_copied(text)) for text in texts]),
            ],
            axis=1,
        )
        hidden = np.stack([name.hidden.reshape(-1) for name in names])
        return Signals(
            tuple(questions),
            tuple(texts),
            tuple(answers),
            tuple(one.ended for one in found),
            tuple(one.first for one in found),
            values,
            hidden.astype(np.float32),
        )

    def prompt(self, question: Question) -> list[int]:
        """Token ids of the prompt that gives the answer."""
        return self._ids(self.ways[0].prompt(self._worded(question)))

    def prompts(self, question: Question) -> list[list[int]]:
        """Token ids of the prompt in every way of asking, the one that gives the answer first."""
        return [self._ids(way.prompt(self._worded(question))) for way in self.ways]

    def name_positions(self, question: Question) -> tuple[int, int]:
        """Token positions [first, last) of the name in that prompt, where it is mentioned last."""
        text = self.ways[0].prompt(self._worded(question))
        start = text.rindex(question.name)
        before = text[:start].rstrip(" ")  # the space before a word belongs to the token of the word
        first = len(self._ids(before))
        return first, max(first + 1, len(self._ids(text[: start + len(question.name)])))

    def _worded(self, question: Question) -> Question:
        """A question for the relation in the wording that badges are fitted on, whatever its own is."""
        return about(question.name, self.relation) if self.relation and question.name else question

    def _ids(self, text: str) -> list[int]:
        return [*self._begin, *self.model.encode(text)]

    @property
    def _begin(self) -> list[int]:
        """The token at the beginning of a text, where the tokenizer adds one and the chat template does not."""
        tokenizer = self.model.tokenizer
        first = self.model.encode("", begin=True)[:1]
        written = self.ways[0].before.startswith(str(tokenizer.bos_token or "\0"))
        return [] if written else first

    def _other_ways(
        self, questions: Sequence[Question], answers: Sequence[tuple[int, ...]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """(other ways, questions): the log-probability of each answer; and the share of them that gives this answer."""
        logs, same = [], []
        for way in self.ways[1:]:
            scored = self.model.score([self._ids(way.prompt(question)) for question in questions], answers)
            logs.append([one.log_probability for one in scored])
            same.append([one.greedy for one in scored])
        return np.array(logs), np.array(same, dtype=float).mean(0)

    def _nobody_logs(self, answers: Sequence[tuple[int, ...]]) -> list[float]:
        """The log-probability of each answer for invented names: the logarithm of the mean probability."""
        new = sorted(set(answers) - set(self._nobody))
        if new:
            logs = []
            for name in invented_names():
                asked = about(name, self.relation) if self.relation else Question(f"Who was {name}?", name, "")
                scored = self.model.score([self._ids(self.ways[0].prompt(asked))] * len(new), new)
                logs.append([one.log_probability for one in scored])
            mean = np.logaddexp.reduce(logs, axis=0) - np.log(len(logs))
            self._nobody.update(zip(new, mean.tolist(), strict=True))
        return [self._nobody[tokens] for tokens in answers]

    def read_names(self, names: Sequence[str], n_contexts: int = len(NAME_CONTEXTS)) -> list[NameSignals]:
        """Signals and hidden states of names, which do not depend on a question, with the bonds in so many contexts."""
        new = sorted(
            name for name in set(names) if name not in self._names or len(self._names[name].bonds) < n_contexts
        )
        if new:
            tokens = [self._name_tokens(name) for name in new]
            lasts = [self.model.encode(f" {_last_word(name)}") for name in new]
            found = [self._bonds(self._context(text), tokens, lasts) for text in NAME_CONTEXTS[:n_contexts]]
            bonds = np.stack([bonds for _, bonds in found], axis=1).tolist()
            for name, one, own in zip(new, found[0][0], bonds, strict=True):
                self._names[name] = NameSignals(one.logs, tuple(own), one.hidden)
        return [self._names[name] for name in names]

    def _bonds(
        self, context: list[int], names: Sequence[list[int]], lasts: Sequence[list[int]]
    ) -> tuple[list[Scored], np.ndarray]:
        """The scores of names after a context, and the bond of the last word of each with the words before it."""
        scored = self.model.score([context] * len(names), names, layers=self.name_layers)
        own = np.array([one.logs[-len(last) :].sum() for one, last in zip(scored, lasts, strict=True)])
        other = []
        for first in first_names():
            start = [*context, *self.model.encode(f" {first}")]
            other.append([one.logs.sum() for one in self.model.score([start] * len(lasts), lasts)])
        return scored, own - (np.logaddexp.reduce(other, axis=0) - np.log(len(other)))

    def _name_tokens(self, name: str) -> list[int]:
        first = (name or NOBODY).rpartition(" ")[0]
        start = self.model.encode(f" {first}") if first else []
        return [*start, *self.model.encode(f" {_last_word(name)}")]

    def _context(self, text: str) -> list[int]:
        """A context of names, after the token that begins a text."""
        start = self.model.encode("", begin=True)[:1] or [int(self.model.ends.nonzero()[0])]
        return [*start, *self.model.encode(text)]

    def _name_given_answer(self, questions: Sequence[Question], texts: Sequence[str]) -> np.ndarray:
        """log P(name in a list of people that the answer fits) − log P(name alone), each for the whole name."""
        names = [self._name_tokens(question.name) for question in questions]
        given = [self._ids(REVERSED.get(self.relation, REVERSED[""]).format(answer=text)) for text in texts]
        after = self.model.score(given, names)
        alone = [self._names[question.name].logs.sum() for question in questions]
        return np.array([one.logs.sum() for one in after]) - np.array(alone)

    def _is_copied(self, text: str) -> bool:
        return same_name(text) in {same_name(answer) for answer in self.ways[0].answers}


def answer_text(model: CausalModel, tokens: Sequence[int]) -> str:
    """The text of an answer, without unprintable characters, the full stop, and quotation marks around it."""
    written = "".join(c if c.isprintable() and c != "\N{REPLACEMENT CHARACTER}" else " " for c in model.decode(tokens))
    text = " ".join(written.split()).strip(" \"'“”*")
    return text[:-1].rstrip() if text.endswith((".", ",", ";")) and not text.endswith("D.C.") else text


@cache
def invented_names() -> tuple[str, ...]:
    """The invented names that answers are compared with."""
    return pantheon().invented_names(N_INVENTED, INVENTED_SEED)


@cache
def first_names() -> tuple[str, ...]:
    """First names of other people, that a name's last word is tried after."""
    names = [name.rsplit(" ", 1)[0] for name in pantheon().invented_names(40, INVENTED_SEED + 1)]
    short = [name for name in names if " " not in name and name.isalpha()]
    return tuple(dict.fromkeys(short))[:N_FIRST_NAMES]


def _last_word(name: str) -> str:
    return (name or NOBODY).rpartition(" ")[2]


def _margin(one: Generated) -> float:
    """Log-probability of the first token minus that of the next likeliest; of the end, for an empty answer."""
    logs = [log for _, log in one.first]
    if not one.tokens:
        return one.end_log - logs[0]
    own = one.logs[0]
    others = [log for token, log in one.first if token != one.tokens[0]]
    return own - max(others) if others else 0.0
