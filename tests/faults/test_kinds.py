"""A short part of the kinds that kill, fill disks, interrupt and run two processes; all in one process of their own."""

import re

import pytest

from faults import verbs
from faults.kinds import SECTIONS, kinds
from faults.page import write_page
from faults.processes import Fork

SHORT = {"training: AdamW, one process": 1, "saving": 6, "full disk": 1, "read-only": 2, "ctrl-c at work": 2}


@pytest.mark.parametrize(
    "counts", [dict.fromkeys(SHORT, 1), pytest.param(SHORT, marks=pytest.mark.slow)], ids=["one of each", "more"]
)
def test_a_short_part_of_each_kind_does_no_harm(in_a_process, counts):
    found = in_a_process(counts)
    assert set(found) == set(SHORT)
    for name, count in found.items():
        assert count.harmless and count.tried == counts[name], f"{name}: {count.examples}"


@pytest.mark.slow
def test_every_other_kind_does_no_harm(in_a_process):
    rest = {k.name: max(2, k.count // 100) for k in kinds() if not k.name.startswith("file: ") and k.name not in SHORT}
    for name, count in in_a_process(rest).items():
        assert count.harmless, f"{name}: {count.examples}"


def test_every_verb_has_a_line():
    assert set(verbs.verbs()) <= set(verbs.LINES)


def test_kinds_have_unique_names_known_sections_and_the_published_counts():
    found = kinds()
    assert len({k.name for k in found}) == len(found) and {k.section for k in found} == set(SECTIONS)
    assert sum(k.count for k in found if k.name.startswith("training: ")) == 100
    assert all(k.count == 2000 for k in found if k.name.startswith("file: "))
    assert {k.name: k.count for k in found}["certificates"] == 10_000


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.json", '{"a": 1'), ("x.svg", "<svg><g>"), ("x.html", "<html>"), ("x.tsv", "a\tb"), ("x.jsonl", '{"a"'),
        ("x.safetensors", "\x08"), (".qkv-tmp-1.json", "{}"),
    ],
)  # fmt: skip
def test_half_of_a_file_is_seen(name, content, tmp_path):
    (tmp_path / "whole.json").write_text("{}")
    assert verbs.half_written(tmp_path) == ""
    (tmp_path / name).write_text(content)
    assert name in verbs.half_written(tmp_path)


def test_a_fork_tells_its_end_what_it_said_and_its_traceback():
    assert Fork(lambda: print("said")).wait().out == "said\n"  # noqa: T201
    ended = Fork(lambda: 1 / 0).wait()
    assert ended.code == 1 and ended.traceback
    import time

    assert Fork(lambda: time.sleep(60)).wait(0.2).code is None


def test_the_page_has_a_row_for_every_result(tmp_path):
    import json

    results = tmp_path / "results"
    results.mkdir()
    kind = {"name": "n", "section": SECTIONS[0], "seed": 0, "date": "2026-01-01", "kind": "K", "tried": 7, "refused": 7}
    (results / "n.json").write_text(json.dumps(kind))
    write_page(results, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text("utf-8")
    assert "**7 faults of 1 kinds: 0 lost" in text and re.search(r"\| K \| 7 \| 7 \| 0 \|", text)
