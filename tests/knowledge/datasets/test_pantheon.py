"""The shipped table."""

from importlib import resources

from qkv.knowledge import Person, pantheon


def test_the_table_has_all_people_with_all_facts_and_its_citation():
    facts = pantheon()
    assert len(facts) == 10_768 == len({p.name for p in facts})
    known = {p.name: p for p in facts}
    assert known["Albert Einstein"] == Person("Albert Einstein", "Ulm", "Germany", "1879", "physicist")
    assert known["Aristotle"].year == "384 BC"
    assert all(p.city and p.country and p.year and p.occupation for p in facts)
    assert "10.7910/DVN/28201" in resources.files("qkv.knowledge.datasets").joinpath("data/PANTHEON.md").read_text(
        "utf-8"
    )
