import re
import xml.etree.ElementTree as ET

import torch

from qkv.viz.attention_arcs import LEAST_WEIGHT, MOST_ARCS, arcs_svg


def test_the_largest_weights_of_every_token_are_drawn_and_no_others():
    n = 30
    weights = torch.rand(n, n, generator=torch.Generator().manual_seed(0), dtype=torch.float64).pow(6)
    weights = weights / weights.sum(1, keepdim=True)
    tree = ET.fromstring(arcs_svg([f"t{i}" for i in range(n)], weights, 4).replace("<svg ", '<svg xmlns="" ', 1))
    rows = [g for g in tree.iter("g") if "row" in g.get("class")]
    drawn = [sorted(float(t.text) for t in g.findall("text")[1:]) for g in rows]
    for row, found in zip(weights, drawn, strict=True):
        wanted = sorted(float(w) for w in row.topk(MOST_ARCS).values if w >= LEAST_WEIGHT)
        assert found == [float(f"{w:.2f}") for w in wanted]
    ground = [p for p in tree if p.tag == "path"]
    assert sum(p.get("d").count("M") for p in ground) == sum(map(len, drawn))
    assert [g.get("class") for g in rows].index("row chosen") == 4


def test_tokens_are_escaped_and_cut():
    drawn = arcs_svg(["<script>", "a" * 40], torch.eye(2), None, 'the "label" & more')
    assert "<script>" not in drawn and "&lt;script&gt;" in drawn and "a" * 16 not in drawn
    assert not re.search(r"(href|src)=|url\(", drawn)
    ET.fromstring(drawn)
