"""Every page can be exported: as Python code that computes the same numbers, as pictures, as JSON."""

import json
import re
from urllib.parse import quote

import pytest
from harness import downloaded, violations
from marks import some

from qkv.core.display import number

expect = pytest.importorskip("playwright.sync_api").expect

CLAIM = "```claim one\ngiven k_1..k_n free, q free\nthen alpha_i >= 0\n```\n"
QUESTION = "Where was Person 3 born?"
PAGES = {
    "noise": ("noise?heads=3&n=9", ".layout .chart svg"),
    "wiring": ("wiring?beta=1.5", ".derivation .katex-html"),
    "claims": (f"claims?text={quote(CLAIM)}", ".verdict .word"),
    "knowledge": (f"knowledge?q={QUESTION}", "[data-fact=badge]"),
}


def same_noise(page, names, printed):
    reports = names["reports"]
    for report in reports:
        shown = page.locator(f"[data-fact='{report.name} variance']")
        if shown.count():
            assert f"variance {shown.inner_text()}," in printed
    expect(page.locator("[data-fact='three heads variance']")).to_have_text(number(reports[1].variance))
    return {"layouts": [{"variance": report.variance} for report in reports]}


def same_wiring(page, names, printed):
    weights = names["reading"].weights
    title = page.locator(".views h2 >> nth=0").inner_text()
    for token, reads in re.findall(r"x(\d) reads x\d \(([\d.]+)\)", title):
        assert f"({reads})" in next(line for line in printed.splitlines() if line.startswith(f"x_{token} reads"))
    says = page.locator(".views .quiet", has_text="At β = 1").inner_text().removeprefix("At β = 1, ").rstrip(".")
    assert says in printed
    expect(page.locator(".views h2 >> nth=0")).to_contain_text(f"x1 reads x2 ({number(float(weights[0, 1]), 3)})")
    return {"weights": weights.tolist()}


def same_claims(page, names, printed):
    for verdict in names["verdicts"]:
        assert f"{verdict.verdict}: {verdict.says}\n    {verdict.because}\n" in printed
    assert page.locator(".verdict .says").get_attribute("data-says") in printed
    found = [v.verdict for v in names["verdicts"].verdicts]
    assert found == [text.split()[1] for text in page.locator(".verdict .word").all_text_contents()]
    return {"verdicts": [{"verdict": verdict} for verdict in found]}


def same_knowledge(page, names, printed):
    answer = names["answer"]
    assert printed.startswith(page.locator("[data-fact=answer]").inner_text())
    assert page.locator("[data-fact=badge]").inner_text().split(maxsplit=1)[1] in printed
    assert page.locator(".why").inner_text().lower() in printed.lower()
    expect(page.locator("[data-fact=answer]")).to_have_text(answer.answer or "(no answer)")
    return {"badge": answer.badge}


SAME = {"noise": same_noise, "wiring": same_wiring, "claims": same_claims, "knowledge": same_knowledge}


CALLS = {"noise": "layout_reports(", "wiring": "wired = wire(", "claims": "check(text", "knowledge": "ask(run, "}
"""The call that made the picture."""
CARRIED = {
    "wiring": (".outcomes li", ".views .quiet"),
    "claims": (".verdict .word", ".verdict .because"),
    "knowledge": ("[data-fact=answer]", "[data-fact=badge]", ".why"),
}
"""What a page says and its picture carries."""


def agree(expected, found):
    """Whether every number and string of the first is in the second."""
    if isinstance(expected, dict):
        return all(agree(value, found[name]) for name, value in expected.items())
    if isinstance(expected, list):
        return len(expected) == len(found) and all(map(agree, expected, found))
    return expected == (pytest.approx(found, rel=1e-9, abs=1e-13) if isinstance(expected, float) else found)


@pytest.mark.parametrize("name", some(PAGES, ["claims"]))
def test_each_page_exports_python_pictures_and_numbers(watched, name, capsys):
    one = watched()
    fragment, seen = PAGES[name]
    page = one.open(fragment)
    page.wait_for_selector(seen, timeout=60_000)
    one.settled()
    page.get_by_role("button", name="Copy as Python").click()
    expect(page.locator(".share .said")).to_have_text("Python copied")
    names, code = {"__name__": "notebook"}, page.evaluate("navigator.clipboard.readText()")
    assert CALLS[name] in code
    capsys.readouterr()
    exec(code, names)
    expected = SAME[name](page, names, capsys.readouterr().out)
    drawn = downloaded(page, name, "SVG").decode()
    downloaded(page, name, "PNG")
    for place in CARRIED.get(name, ()):
        words = page.locator(place).first.inner_text().split()
        assert all(word in drawn for word in words if word.isalpha()), place
    kept = json.loads(downloaded(page, name, "JSON"))
    assert agree(expected, kept.get("reply", kept))


@pytest.mark.slow
def test_a_study_survives_a_reload_shows_its_curves_and_can_be_cancelled(watched):
    one = watched()
    page = one.open("noise?n=5&heads=3")
    page.get_by_role("button", name="Study all scales").click()
    expect(page.locator(".study [role=status]")).to_contain_text("of at most 64 scales", timeout=60_000)
    page.reload()
    expect(page.locator("h2", has_text="Probability of success against scale")).to_be_visible(timeout=120_000)
    expect(page.locator(".study figcaption")).to_contain_text("For three wanted of 5 items")
    page.get_by_role("button", name="Study all scales").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)


def svg_text(content):
    """The text of a downloaded SVG, without its spaces: it has one element for each line and each kind of text."""
    return "".join(re.sub(r"<[^>]*>", " ", content.decode()).split())


def unspaced(text):
    return "".join(text.split())


@pytest.mark.slow
def test_the_pictures_of_noise_carry_its_numbers_and_sentences(watched):
    one = watched(color_scheme="dark")
    page = one.open("noise?scale=7")
    page.wait_for_selector(".layout .chart svg")
    one.settled()
    text = svg_text(downloaded(page, "noise", "SVG"))
    for fact in ("mean", "variance", "success", "range"):
        assert unspaced(page.locator(f"[data-fact='two heads {fact}']").inner_text()) in text
    assert unspaced(page.locator("[data-fact=comparison]").inner_text()) in text
    assert "weightofa" in text and "Successismostlikely" in text and "Sampleagain" not in text


def test_the_pictures_of_lookup_carry_the_path_and_the_facts(watched):
    one = watched()
    page = one.open("lookup?n=50")
    page.wait_for_selector(".chart svg")
    one.settled()
    text = svg_text(downloaded(page, "lookup", "SVG"))
    for fact in ("leak", "distance", "output", "sum"):
        assert unspaced(page.locator(f"[data-fact={fact}]").inner_text()) in text
    for title in page.locator(".views h2").all_inner_texts():
        assert unspaced(title) in text
    assert "theother40together" in text and "Dragq" not in text and "Showall" not in text


@pytest.mark.slow
def test_the_pictures_of_knowledge_carry_answer_and_badge(watched):
    one = watched()
    page = one.open(f"knowledge?q={QUESTION}")
    page.wait_for_selector("[data-fact=badge]", timeout=60_000)
    one.settled()
    text = svg_text(downloaded(page, "knowledge", "SVG"))
    for fact in ("answer", "badge"):
        assert unspaced(page.locator(f"[data-fact={fact}]").inner_text()) in text
    assert unspaced(QUESTION) in text


@pytest.mark.slow
def test_an_exported_picture_is_drawn_where_it_stands_on_screen(watched):
    """Three layouts side by side stay so, and no text reaches beyond the picture."""
    one = watched()
    page = one.open("noise")
    page.wait_for_selector(".layout .chart svg")
    one.settled()
    content = downloaded(page, "noise", "SVG").decode()
    width = float(re.search(r'width="(\d+)"', content)[1])
    starts = {
        name: float(re.search(rf'<text x="([\d.]+)"[^>]*>{name}<', content)[1]) for name in ("one head", "two heads")
    }
    assert starts["two heads"] > starts["one head"] + 150
    for x, length in re.findall(r'<text x="([\d.]+)"[^>]*textLength="([\d.]+)"', content):
        assert float(x) >= 0 and float(x) + float(length) <= width


@pytest.mark.slow
def test_the_pictures_of_wiring_carry_which_rules_are_met(watched):
    one = watched()
    page = one.open("wiring?beta=0.8")
    page.wait_for_selector(".heat svg")
    one.settled()
    text = svg_text(downloaded(page, "wiring", "SVG"))
    for said in [*page.locator(".views h2").all_inner_texts(), *page.locator(".outcomes li").all_inner_texts()]:
        assert unspaced(said) in text


@pytest.mark.parametrize(
    ("scheme", "colours"),
    [
        ("light", False),
        pytest.param("light", True, marks=pytest.mark.slow),
        pytest.param("dark", True, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", some(["wiring", "claims", "knowledge"], ["wiring"]))
def test_axe_finds_no_violation_where_all_is_open(watched, name, scheme, colours):
    one = watched(color_scheme=scheme)
    fragment, seen = PAGES[name]
    page = one.open(fragment)
    page.wait_for_selector(seen, timeout=60_000)
    one.settled()
    page.locator("details").evaluate_all("all => all.forEach((d) => { d.open = true })")
    assert violations(page, colours) == []


def test_the_code_of_a_designed_query_designs_it_and_prints_what_the_page_shows(watched, capsys):
    one = watched()
    page = one.open("lookup")
    page.get_by_role("button", name="Blend these").click()
    expect(page.locator(".found.yes")).to_be_visible()
    expect(page.locator("[data-python]")).to_contain_text("blend(memory,")
    one.settled()
    page.get_by_role("button", name="Copy as Python").click()
    expect(page.locator(".share .said")).to_have_text("Python copied")
    code = page.evaluate("navigator.clipboard.readText()")
    assert "query = [" not in code  # the call, not its numbers
    capsys.readouterr()
    exec(code, {"__name__": "notebook"})
    printed = capsys.readouterr().out
    assert f"leak: {page.locator('[data-fact=leak]').inner_text()}" in printed
    distance = re.search(r"at most (\S+) from the wanted", page.locator(".found.yes").inner_text())[1]
    assert f"at most {distance} from the wanted weights" in printed


NOTHING_YET = {
    "lookup": ("lookup", "/api/lookup", ""),
    "noise": ("noise", "/api/noise", ""),
    "wiring": ('wiring?tokens=[["x_1","nothing at all"]]', "", "There is nothing to download."),
    "wiring that waits": ("wiring", "/api/wiring", ""),
    "claims": ("claims?text=Nothing%20is%20claimed.", "", "There are no claims."),
    "claims that wait": ("claims", "/api/check", ""),
    "sheets": ("sheets", "/api/grade", ""),
    "heads": ("heads?model=gone", "", "Choose a model first."),
    "heads that wait": ("heads", "/api/heads/survey", ""),
    "heads without their weights": ("heads", "/api/heads/weights", ""),
    "knowledge": ("knowledge", "", "Ask something first."),
    "knowledge without its model": (f"knowledge?model=gone&q={QUESTION}", "", "Ask something first."),
}
"""Pages without a result: their state, the request that is not answered, and the reason that is shown."""


@pytest.mark.parametrize("name", some(NOTHING_YET, ["lookup", "claims", "heads that wait", "knowledge"]))
def test_nothing_can_be_downloaded_before_there_is_a_result_and_the_page_says_why(watched, name):
    one = watched()
    fragment, held, reason = NOTHING_YET[name]
    if held:
        one.page.route(f"**{held}", lambda route: None)
    page = one.open(fragment)
    if not held:
        one.settled()
    for kind in ("SVG", "PNG") if "weights" in name else ("SVG", "PNG", "JSON"):
        button = page.get_by_role("button", name=f"as {kind}")
        expect(button).to_be_disabled()
        expect(button).to_have_accessible_description(reason or "There is no result yet.")
    if reason:
        expect(page.locator(".share .missing")).to_have_text(reason)


@pytest.mark.slow
def test_an_emptied_sheet_cannot_be_downloaded(watched):
    one = watched()
    page = one.open("sheets")
    expect(page.get_by_role("button", name="as SVG")).to_be_enabled(timeout=60_000)
    page.get_by_role("textbox", name="Your sheet").fill("")
    page.keyboard.press("Control+Enter")
    for kind in ("SVG", "PNG", "JSON"):
        expect(page.get_by_role("button", name=f"as {kind}")).to_be_disabled()
    expect(page.locator(".share .missing")).to_have_text("There is no sheet.")
