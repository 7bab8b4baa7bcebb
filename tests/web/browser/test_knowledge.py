"""Knowledge page: a question, its answer, the badge, and training."""

import pytest
from harness import serving
from marks import spread

expect = pytest.importorskip("playwright.sync_api").expect

QUESTION = "Where was Person 3 born?"


ATTENDS_MOST = """async (heads) => { const { attendsMost } = await import("/static/pages/knowledge.js");
  return attendsMost(heads, "Ada"); }"""


@pytest.mark.parametrize(
    ("weights", "said"),
    spread([
        ((0.1, 0.3, 0.2, 0.0), "Layer 0, head 1 attends most to “Ada”"),
        ((0.301, 0.3, 0.2, 0.0), "Layer 0, head 0 and layer 0, head 1 attend about equally, and most, to “Ada”"),
        ((0.301, 0.3, 0.2999, 0.302), "All heads attend about equally to “Ada”"),
        ((0.001, 0.002, 0.0, 0.0), "Layer 0, head 1 attends most to “Ada” (0.002)"),
        ((0.0, 0.0, 0.0, 0.0), "No head attends to “Ada”"),
    ], 4),
)  # fmt: skip
def test_heads_that_agree_to_the_digits_shown_are_not_told_apart(watched, weights, said):
    page = watched().open("knowledge")
    heads = [{"layer": i // 2, "head": i % 2, "weight": w} for i, w in enumerate(weights)]
    assert page.evaluate(ATTENDS_MOST, heads) == said


def test_a_question_gets_the_answer_of_the_library(watched, model):
    from qkv.knowledge import ask
    from qkv.train import load

    page = watched().open("knowledge")
    page.get_by_label("Question", exact=True).fill(QUESTION)
    page.keyboard.press("Enter")
    expected = ask(load(model), QUESTION)
    expect(page.locator("[data-fact=answer]")).to_have_text(expected.answer or "(no answer)")
    if expected.badge:
        expect(page.locator("[data-fact=badge]")).to_contain_text(expected.badge)
    heads = [{"layer": h.layer, "head": h.head, "weight": h.weight} for h in expected.heads]
    title = page.evaluate(ATTENDS_MOST, heads)
    expect(page.locator("h3", has_text=title.replace("Ada", expected.name))).to_be_visible()
    page.get_by_text("Evidence", exact=True).click()
    shown = page.locator("[data-fact=probability]").inner_text()
    assert float(shown) == pytest.approx(expected.evidence["probability"], abs=6e-4)


@pytest.mark.slow
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


def staged(page, **changes):
    """Let the page show a reply of the server with some fields changed."""

    def answer(route):
        reply = route.fetch()
        route.fulfill(response=reply, json={**reply.json(), **changes})

    page.route("**/api/ask", answer)


@pytest.mark.slow
def test_no_answer_has_no_badge(watched):
    page = watched().open("knowledge")
    nothing = [{"text": "", "probability": 0.6}, {"text": "Oslo", "probability": 0.2}]
    staged(page, answer="", badge=None, alternatives=nothing, why="the most likely answer is empty")
    page.get_by_label("Question", exact=True).fill(QUESTION)
    page.keyboard.press("Enter")
    expect(page.locator("[data-fact=answer]")).to_have_text("(no answer)")
    expect(page.locator(".badge")).to_have_count(0)
    expect(page.locator("[aria-live=polite]")).to_have_text("No answer. The most likely answer is empty")


@pytest.mark.slow
def test_a_question_without_a_name_names_no_head(watched):
    page = watched().open("knowledge?q=where was he born?")
    expect(page.locator(".why")).to_contain_text("no name was found in the question")
    expect(page.locator("h3", has_text="attends")).to_have_count(0)


@pytest.mark.slow
def test_special_tokens_are_never_shown(watched, model):
    page = watched().open("knowledge")
    for question in (QUESTION, "who", "?", "Where was Zzyzx Qqq born?", "of"):
        page.get_by_label("Question", exact=True).fill(question)
        page.keyboard.press("Enter")
        expect(page.locator(".asked")).to_have_text(question)
        expect(page.locator(".asking .quiet[role=status]")).to_have_count(0)
        assert not set("␃□⁇") & set(page.locator(".answer").inner_text())


@pytest.mark.slow
def test_a_draft_survives_another_page_after_a_question_was_asked(watched):
    page = watched().open(f"knowledge?q={QUESTION}")
    expect(page.locator("[data-fact=answer]")).to_be_visible()
    field = page.get_by_label("Question", exact=True)
    expect(field).to_have_value(QUESTION)
    field.fill("Where was Person 5")
    page.locator("nav a", has_text="Noise").click()
    page.locator("nav a", has_text="Knowledge").click()
    expect(page.locator("[data-fact=answer]")).to_be_visible()
    expect(field).to_have_value("Where was Person 5")


def test_a_model_that_is_gone_is_not_replaced_by_another(watched):
    one = watched()
    page = one.open(f"knowledge?model=train-gone&q={QUESTION}")
    expect(page.locator(".problem")).to_contain_text("There is no model train-gone on this server")
    expect(page.locator("[data-fact=answer]")).to_have_count(0)
    assert not [to for to, _ in one.bodies if to == "/api/ask"]
    page.locator("[data-name=model]").select_option("tiny")
    expect(page.locator("[data-fact=answer]")).to_be_visible()


@pytest.mark.slow
def test_a_trained_model_can_be_kept_and_its_link_and_code_work_on_the_next_server(chromium, tmp_path):
    runs = tmp_path / "kept"
    context = chromium.new_context()
    page = context.new_page()
    with serving(runs=runs) as address:
        page.goto(f"{address}/knowledge")
        page.locator("[data-name=people] input.box").fill("4")
        page.locator("[data-name=steps] input.box").fill("10")
        page.get_by_role("button", name="Train").click()
        note = page.locator(".keeping")
        expect(note).to_contain_text("This model will be gone when the server stops", timeout=90_000)
        expect(note).to_contain_text(f"in {runs}")
        page.get_by_label("Question", exact=True).fill(QUESTION)
        page.keyboard.press("Enter")
        code = page.locator("[data-python]")
        expect(code).to_contain_text("This folder is removed when the server stops")
        page.get_by_role("button", name="Keep this model").click()
        expect(page.locator("[data-fact=kept]")).to_contain_text(str(runs))
        expect(code).to_contain_text(str(runs))
        answer, code = page.locator("[data-fact=answer]").inner_text(), code.text_content()
        page.wait_for_timeout(300)
        link = page.evaluate("location.hash")
    names = {}
    exec(compile(code, "copied", "exec"), names)
    assert (names["answer"].answer or "(no answer)") == answer and "removed" not in code
    with serving(runs=runs) as address:
        page.goto(f"{address}/{link}")
        expect(page.locator("[data-fact=answer]")).to_have_text(answer)
        expect(page.locator(".problem")).to_have_count(0)
    context.close()
