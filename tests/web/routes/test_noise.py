"""Noise: replies agree with the library, with simulated keys, and with their Python code."""

import numpy as np
import pytest
import torch


def close(a, b):
    return np.allclose(np.asarray(a, dtype=float), np.asarray(b, dtype=float), rtol=1e-12, atol=1e-14)


def test_the_python_code_gives_the_three_layouts(post, state, run_code):
    for body in (state("noise"), {**state("noise"), "isotropic": 0.0, "n": 5}, {**state("noise"), "heads": 3, "n": 20}):
        found = post("/api/noise", body)
        reports = run_code(found["python"])["reports"]
        several = {2: "two heads", 3: "three heads"}[body["heads"]]
        assert [layout["name"] for layout in found["layouts"]] == ["one head", several, "min variance"]
        for shown, report in zip(found["layouts"], reports, strict=True):
            assert (shown["mean"], shown["variance"]) == pytest.approx(
                (report.mean, report.variance), rel=1e-12, abs=1e-15
            )
            assert shown["probability"] == report.probability and shown["low"] <= report.probability <= shown["high"]
            assert close(shown["weight_samples"], report.drawn) and len(shown["weight_samples"]) == body["n_samples"]
            assert close(shown["law"]["share"], report.share) and close(shown["law"]["edges"], report.edges)
            assert shown["law"]["method"] == report.law_method == ("quadrature" if body["isotropic"] else "exact")
            assert sum(shown["law"]["share"]) == pytest.approx(1)
        one, two, hard = (layout["variance"] for layout in found["layouts"])
        assert hard < two / 10 < one / 10


def test_as_many_heads_as_items_are_refused(client):
    found = client.post("/api/noise", json={"n": 5, "heads": 5})
    assert found.status_code == 422 and found.json()["error"]["problem"] == "5 heads for 5 items"


def test_figures_agree_with_simulated_keys(post):
    body = {"n": 6, "along": 0.5, "isotropic": 0.01, "scale": 5.0, "radius": 0.3, "n_samples": 10, "seed": 1}
    found = post("/api/noise", body)["layouts"][0]
    generator = torch.Generator().manual_seed(0)
    draws = 200_000
    keys = torch.eye(6).repeat(draws, 1, 1) + 0.1 * torch.randn(draws, 6, 6, generator=generator)
    keys[:, 0, 0] += 0.5**0.5 * torch.randn(draws, generator=generator)
    alpha = torch.softmax(5.0 * (keys[:, :, 0] + keys[:, :, 1]), -1)
    assert found["mean"] == pytest.approx(float(alpha[:, 0].mean()), abs=5e-3)
    assert found["variance"] == pytest.approx(float(alpha[:, 0].var()), abs=3e-3)
    miss = alpha - torch.tensor([0.5, 0.5, 0, 0, 0, 0])
    truth = float((miss.norm(dim=1) <= 0.3).double().mean())
    held = torch.histogram(alpha[:, 0], torch.tensor(found["law"]["edges"])).hist / draws
    assert float((held - torch.tensor(found["law"]["share"])).abs().max()) < 5e-3
    assert found["low"] - 0.01 <= truth <= found["high"] + 0.01
