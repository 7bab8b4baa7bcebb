"""Remove the texts about the people that questions name: a baseline of what is answered without having read."""

from __future__ import annotations

from pathlib import Path

from qkv.errors import QkvError
from qkv.train.data.entity_passages import TitleIndex, parse_passages
from qkv.train.data.text_files import SizedIterable, read_questions, read_texts


def drop_texts_about(
    text: str | Path | SizedIterable[str], questions: str | Path | SizedIterable[tuple[str, str]]
) -> list[str]:
    """Texts that are not about any person named in the questions.

    A model that is trained on them shows what can be guessed without having read about these people.

    Args:
        text: File with one text per line, or a list of texts that begin with a name.
        questions: File of question<TAB>answer lines, or pairs.

    Returns:
        The texts that are left, in their order.

    Raises:
        QkvError: If the questions name none of the titles, or all of them.

    Example:
        >>> import qkv
        >>> texts = ["Ada Lee. Ada Lee was born in Rome .", "Bo Roy. Bo Roy was born in Oslo ."]
        >>> qkv.knowledge.drop_texts_about(texts, [("Where was Bo Roy born?", "Oslo")])
        ['Ada Lee. Ada Lee was born in Rome .']
    """
    texts = read_texts(text)
    asked = [question for question, _ in read_questions(questions)]
    titles = TitleIndex(parse_passages(texts, asked))
    dropped = {number for question in asked for number in titles.named_in(question)}
    if not dropped or len(dropped) == len(texts):
        raise QkvError(
            "leaving people out of a text",
            f"the questions name {len(dropped)} of its {len(texts)} titles",
            "Give questions about some of the people that texts begin with",
        )
    return [each for number, each in enumerate(texts) if number not in dropped]
