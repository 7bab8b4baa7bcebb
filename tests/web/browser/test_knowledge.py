"""Knowledge page: a question, its answer, the badge, and training."""

import pytest

expect = pytest.importorskip("playwright.sync_api").expect

QUESTION = "Where was Person 3 born?"


def test_a_question_gets_the_answer_of_the_library(watched, model):
    from qkv.knowledge import ask
    from qkv.train import load

    page = watched().open("knowledge")
    page.get_by_label("Question").fill(QUESTION)
    page.keyboard.press("Enter")
    expected = ask(load(model), QUESTION)
    expect(page.locator("[data-fact=answer]")).to_have_text(expected.answer or "(no answer)")
    expect(page.locator("[data-fact=badge]")).to_contain_text(expected.badge)
    top = max(expected.heads, key=lambda h: h.weight)
    expect(page.locator("h3", has_text=f"Layer {top.layer}, head {top.head} attends most")).to_be_visible()
    page.get_by_text("Evidence", exact=True).click()
    shown = page.locator("[data-fact=probability]").inner_text()
    assert float(shown) == pytest.approx(expected.evidence["probability"], abs=6e-4)


def test_a_link_asks_again(watched):
    page = watched().open(f"knowledge?q={QUESTION}")
    expect(page.locator("[data-fact=badge]")).to_be_visible()


def test_training_shows_progress_survives_a_reload_and_can_be_cancelled(watched):
    one = watched()
    page = one.open("knowledge")
    page.locator("[data-name=steps] input.box").fill("2000")
    page.get_by_role("button", name="Train").click()
    expect(page.locator("h2", has_text="Training: step")).to_be_visible(timeout=60_000)
    page.reload()
    expect(page.locator("h2", has_text="Training: step")).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("h2", has_text="Cancelled")).to_be_visible()
