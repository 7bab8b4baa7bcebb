"""ask: the answer of a language model with alternatives, badge, evidence and the attention on the name."""

from __future__ import annotations

import math
from pathlib import Path

from qkv.core.display import number, probability_percent
from qkv.knowledge.answer import Alternative, Answer
from qkv.knowledge.answering.name_attention import HeadAttention
from qkv.knowledge.confidence.badge import Judgement, rule_of_thumb
from qkv.knowledge.language_models.answer_file import fingerprint
from qkv.knowledge.language_models.badge import ModelBadge
from qkv.knowledge.language_models.causal_model import CausalModel, open_causal_model
from qkv.knowledge.language_models.prompts import Question, understood
from qkv.knowledge.language_models.signals import MAX_ANSWER_TOKENS, SIGNALS, SignalReader, Signals, answer_text

MAX_EXPONENT = 6  # "over a million times" is enough


def ask(model: CausalModel | str | Path, question: str, *, offline: bool = True) -> Answer:
    """Ask a causal language model a question.

    Args:
        model: The model, its folder, or its hub name.
        question: The question, such as "In which city was Immanuel Kant born?".
        offline: Look only at folders and at what was downloaded before.

    Returns:
        The answer with alternatives, badge, evidence and attention on the name. The badge is a rule of thumb by the
        probability of the answer until `trust` has calibrated the model for what the question asks for.

    Raises:
        QkvError: The folder holds no causal language model, or the question is empty or too long.
        MissingExtra: transformers is not installed.
    """
    opened = model if isinstance(model, CausalModel) else open_causal_model(model, offline=offline)
    asked = understood(question)
    reader = SignalReader(opened, asked.relation)
    found = reader.read([asked])
    badge = None
    if asked.relation and Path(opened.name).is_dir():
        badge = ModelBadge.load(opened.name, asked.relation, fingerprint(opened))
    (judged,) = badge.judge(found) if badge else rule_of_thumb(found.column("log_probability").tolist())
    alternatives = _alternatives(reader, found)
    (answer,) = found.answers
    evidence: dict[str, float | None] = {
        "probability": math.exp(float(found.column("log_probability")[0])),
        **{signal: float(found.column(signal)[0]) for signal in SIGNALS},
        "seen": judged.p_seen,
        "right": judged.p_right,
    }
    return Answer(
        question=asked.text,
        answer=answer,
        alternatives=alternatives,
        badge=judged.badge if answer else None,
        why=_explain(found, alternatives, judged, len(reader.ways) - 1),
        evidence=evidence,
        heads=_heads(reader, asked),
        name=asked.name,
        guarantee=badge.statement(judged.badge) if badge and answer else None,
    )


def _alternatives(reader: SignalReader, found: Signals) -> tuple[Alternative, ...]:
    """The answers that begin with each of the likeliest first tokens, the answer itself first."""
    model, (question,) = reader.model, found.questions
    prompt = reader.prompt(question)
    (answer,), (first,) = found.answers, found.first
    rest = model.generate([[*prompt, token] for token, _ in first], MAX_ANSWER_TOKENS - 1)
    logs = {answer: float(found.column("log_probability")[0])}
    for (token, log), one in zip(first, rest, strict=True):
        text = answer_text(model, (token, *one.tokens))
        logs.setdefault(text, log + one.log_probability)
    others = sorted((text for text in logs if text != answer), key=lambda text: -logs[text])
    return tuple(Alternative(text, math.exp(logs[text])) for text in (answer, *others))


def _heads(reader: SignalReader, question: Question) -> tuple[HeadAttention, ...]:
    """Attention of every head from the end of the prompt to the last mention of the name, largest weight first."""
    if not question.name:
        return ()
    prompt = reader.prompt(question)
    span = reader.name_positions(question)
    weights = reader.model.attention_to(prompt, span)
    found = [HeadAttention(layer, head, float(w)) for (layer, head), w in weights.items()]
    return tuple(sorted(found, key=lambda attention: -attention.weight))


def _explain(found: Signals, alternatives: tuple[Alternative, ...], judged: Judgement, n_other: int) -> str:
    """The evidence for the badge of a single answer, in sentences."""
    (answer,), (question,) = found.answers, found.questions
    what = "the answer has" if answer else "the most likely answer is empty; it has"
    parts = [f"{what} probability {number(alternatives[0].probability, 2)}"]
    if len(alternatives) > 1 and alternatives[1].probability > 0:
        ratio = alternatives[0].probability / alternatives[1].probability
        parts[0] += f", {_times(math.log(max(ratio, 1e-300)))} that of “{alternatives[1].text}”"
    same = round(float(found.column("agreement")[0]) * n_other)
    parts.append(f"{same} of {n_other} other ways of asking give the same answer")
    if not question.name:
        parts.append("no name was found in the question")
    else:
        contrast = float(found.column("contrast")[0])
        parts.append(f"it is {_times(contrast)} as likely for this name as for invented names")
        if " " in question.name:
            last = question.name.rpartition(" ")[2]
            bond = float(found.column("name_bond")[0])
            parts.append(f"“{last}” is {_times(bond)} as likely after the rest of the name as after other first names")
    text = "; ".join(parts) + "."
    if not answer:
        return text
    if judged.p_right is None:
        return text + " This badge is a rule of thumb: calibrate it with qkv trust."
    return text + f" Answers with such signals are right {probability_percent(judged.p_right)} of the time."


def _times(log: float) -> str:
    """e^log as "so many times"."""
    power = log / math.log(10)
    if power > MAX_EXPONENT:
        return f"over 10^{MAX_EXPONENT} times"
    if power < -MAX_EXPONENT:
        return f"less than 10^-{MAX_EXPONENT} times"
    return f"{number(math.exp(log), 2)} times"
