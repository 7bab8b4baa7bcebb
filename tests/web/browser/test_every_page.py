"""Every page: themes, small screens, keyboard, links, screen readers."""

import re

import pytest
from harness import violations
from marks import some, spread

expect = pytest.importorskip("playwright.sync_api").expect

READY = {
    "home": ".moving svg",
    "lookup": ".chart svg",
    "noise": ".layout .chart svg",
    "wiring": ".derivation .katex-html",
    "claims": ".verdict",
    "sheets": ".sheet .note",
    "heads": ".arcs svg",
    "knowledge": ".training",
}


A_FEW = ("home", "lookup", "noise")
"""Pages that are looked at in every run; `make test-all` looks at all of them."""


@pytest.mark.parametrize(
    ("scheme", "names"),
    [("dark", A_FEW), *(pytest.param(scheme, tuple(READY), marks=pytest.mark.slow) for scheme in ("light", "dark"))],
    ids=["a few, dark", "light", "dark"],
)
def test_every_page_is_shown_in_both_themes(watched, scheme, names):
    one = watched(color_scheme=scheme)
    for name in names:
        page = one.open(name)
        page.wait_for_selector(READY[name], timeout=90_000)
        red, green, blue = (
            int(c) for c in page.evaluate("getComputedStyle(document.body).backgroundColor").strip("rgb()").split(",")
        )
        assert (red + green + blue < 150) == (scheme == "dark")
        assert page.locator(f"nav [aria-current=page][href='#/{name}']").count() == 1


@pytest.mark.parametrize(
    "names", [A_FEW, pytest.param(tuple(READY), marks=pytest.mark.slow)], ids=["a few pages", "every page"]
)
def test_no_page_scrolls_sideways_on_a_phone(watched, names):
    one = watched(viewport={"width": 375, "height": 812}, has_touch=True, is_mobile=True)
    for name in names:
        page = one.open(name)
        page.wait_for_selector(READY[name], timeout=90_000)
        one.settled()
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, name


@pytest.mark.parametrize(
    ("fragment", "change", "seen"),
    [
        ("lookup", ("[data-name=scale] input.box", "2.5"), "[data-fact=leak]"),
        pytest.param(
            *("noise", ("[data-name=n] input.box", "17"), "[data-fact='two heads variance']"), marks=pytest.mark.slow
        ),
        pytest.param(*("wiring", ("[data-name=beta] input.box", "1.7"), ".views h2 >> nth=0"), marks=pytest.mark.slow),
        pytest.param(
            "claims",
            ("textarea", "```claim x\ngiven k_1..k_n orthonormal, n >= 3\nthen k_a'k_b = 0\n```"),
            ".count",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_address_restores_the_state(watched, fragment, change, seen):
    one = watched()
    page = one.open(fragment)
    place, text = change
    page.locator(place).fill(text)
    one.settled()
    expect(page).to_have_url(re.compile(r"\?"))  # the address follows 150 ms later
    before = page.locator(seen).inner_text()
    link = page.evaluate("location.href")
    fresh = watched()
    fresh.page.goto(link)
    expect(fresh.page.locator(seen)).to_have_text(before, timeout=30_000)
    assert fresh.page.locator(place).input_value() == text


def test_an_invalid_address_gives_the_default_page(watched):
    one = watched()
    page = one.open("lookup?scale=NaN&query=[1]&n=9e99&wanted=[]&moved=7&layout=sideways")
    expect(page.locator("[data-fact=leak]")).to_be_visible()
    assert page.locator(".problem").count() == 0
    page = one.open("nowhere")
    expect(page.locator("nav [aria-current=page]")).to_have_text("Home")


@pytest.mark.parametrize("name", some(READY, ["noise"]))
def test_the_path_of_a_page_opens_it(watched, name):
    one, ready = watched(), READY[name]
    for path in (f"/{name}", f"/{name}?n=17&beta=1.7"):
        one.page.goto("about:blank")
        one.page.goto(one.address + path)
        expect(one.page).to_have_title(f"{name.capitalize()} · qkv explorer")
        expect(one.page.locator(f"nav [aria-current=page][href='#/{name}']")).to_have_count(1)
        assert one.page.evaluate("location.pathname") == "/"
    one.page.wait_for_selector(ready, timeout=90_000)
    if name == "noise":
        assert one.last("/api/noise")["n"] == 17


def test_a_path_that_is_no_page_says_so(watched):
    one = watched()
    reply = one.page.goto(f"{one.address}/nonsense")
    assert reply.status == 404
    expect(one.page.locator("h1")).to_have_text("There is no such page")
    one.page.get_by_role("link", name="Wiring").click()
    expect(one.page.locator("h1")).to_have_text("Wiring")
    one.said = [said for said in one.said if "404" not in said]  # the browser logs the status


TYPED = {
    "lookup": ("[data-name=scale] input.box", "2.5"),
    "noise": ("[data-name=n] input.box", "17"),
    "wiring": ("[aria-label='What x_2 writes']", "2 u_a"),
    "claims": ("textarea", "```claim mine\ngiven k_1..k_n orthonormal, n >= 3\nthen k_a'k_b = 0\n```"),
    "sheets": ("textarea", "(b) Take $q = t(k_a + k_b)$."),
    "heads": ("textarea", "Where was Ada"),
    "knowledge": ("input.text", "Where was no-one born?"),
}


@pytest.mark.parametrize("name", some(TYPED, ["lookup"]))
def test_what_was_typed_survives_another_page_and_a_reload(watched, name):
    one = watched()
    page = one.open(name)
    place, text = TYPED[name]
    page.locator(place).first.fill(text)
    other = "Lookup" if name != "lookup" else "Noise"
    page.locator("nav a", has_text=other).click()  # at once, before the address follows
    expect(page.locator("h1")).to_have_text(other)
    page.locator("nav a", has_text=name.capitalize()).click()
    expect(page.locator(place).first).to_have_value(text)
    page.wait_for_timeout(300)
    page.reload()
    expect(page.locator(place).first).to_have_value(text)
    page.locator("nav a", has_text=name.capitalize()).click()  # its own tab changes nothing
    expect(page.locator(place).first).to_have_value(text)
    fresh = watched()
    fresh.open(name)
    expect(fresh.page.locator(place).first).not_to_have_value(text)  # nothing of it is in another browser tab


def test_start_over_gives_the_initial_state(watched):
    one = watched()
    page = one.open("lookup?scale=2.5&n=9")
    page.get_by_role("button", name="Start over").click()
    expect(page.locator("[data-name=scale] input.box")).to_have_value("4")
    expect(page.locator("[data-name=n] input.box")).to_have_value("6")


@pytest.mark.parametrize("name", some(["lookup", "noise"], ["lookup"]))
def test_start_over_clears_a_number_that_was_refused(watched, name):
    page = watched().open(name)
    box = page.locator("[data-name=scale] input.box")
    usual = box.input_value()
    box.fill("none")
    expect(box).to_have_attribute("aria-invalid", "true")
    page.get_by_role("button", name="Start over").click()
    expect(page.locator(".wrong")).to_have_count(0)
    expect(box).to_have_value(usual)
    expect(box).to_have_attribute("aria-invalid", "false")


def test_every_control_is_reachable_by_keyboard_with_a_visible_focus(watched):
    one = watched()
    page = one.open("lookup")
    page.wait_for_selector(".chart svg")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to content")
    met = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        name, ring = page.evaluate(
            """() => { const f = document.activeElement, s = getComputedStyle(f), inner = f.querySelector?.(".reach");
                 const ring = s.outlineStyle !== "none" || (inner && getComputedStyle(inner).stroke !== "none");
                 const name = f.getAttribute("aria-label") || f.textContent.trim() || f.type || f.tagName;
                 return [f === document.body ? "BODY" : name, ring]; }"""
        )
        if name == "BODY":
            break
        assert ring, f"no visible focus on {name}"
        met.add(name)
    assert {"Noise", "query", "Copy as Python", "Blend these", "range"} <= met
    page.locator("nav a", has_text="Noise").focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Noise")


def test_results_are_announced(watched):
    page = watched().open("lookup")
    expect(page.locator("[aria-live=polite]")).to_contain_text("Weight of a")


def test_home_and_lookup_transfer_few_bytes(watched):
    one = watched()
    sizes = []
    one.page.on("response", lambda r: sizes.append(r.request.sizes()))
    one.open("home").wait_for_selector(READY["home"])
    one.page.locator("nav a", has_text="Lookup").click()
    one.page.wait_for_selector(READY["lookup"])
    total = sum(s["responseBodySize"] + s["responseHeadersSize"] for s in sizes)
    assert 50_000 < total < 600_000


@pytest.mark.slow
def test_a_late_address_does_not_bring_back_the_page_that_was_left(watched):
    """The address follows the state after 150 ms; a link that is followed just before that wins."""
    page = watched().open("noise")
    page.wait_for_selector("[data-name=scale] input.box")
    page.evaluate(
        """() => new Promise((done) => {
          const slider = document.querySelector("[data-name=scale] input[type=range]");
          slider.value = 7;
          slider.dispatchEvent(new Event("input", { bubbles: true }));
          for (const wait of [100, 110, 120, 130, 140, 150, 160, 170]) setTimeout(() => {
            const until = performance.now() + 40;
            while (performance.now() < until) {}
            if (wait === 120) document.querySelector("nav a[href='#/knowledge']").click();
          }, wait);
          setTimeout(done, 600);
        })"""
    )
    page.wait_for_timeout(500)
    assert page.url.split("#")[1].split("?")[0] == "/knowledge"
    assert page.locator("h1").inner_text() == "Knowledge"


PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.mark.parametrize(
    ("mode", "colours", "names"),
    [
        pytest.param({}, False, (*READY, "lookup?n=50", "docs"), marks=pytest.mark.slow),
        ({}, True, ("lookup",)),
        pytest.param({"color_scheme": "dark"}, True, ("lookup",), marks=pytest.mark.slow),
        pytest.param({}, True, (*READY, "lookup?n=50", "docs"), marks=pytest.mark.slow),
        pytest.param({"color_scheme": "dark"}, True, (*READY, "lookup?n=50", "docs"), marks=pytest.mark.slow),
        pytest.param(PHONE, None, (*READY, "lookup?n=50", "docs"), marks=pytest.mark.slow),
    ],
    ids=["all but colours", "light lookup", "dark lookup", "light", "dark", "phone"],
)
def test_axe_finds_no_violation(watched, mode, colours, names):
    """axe-core's rules of WCAG and good practice, on every page, with an open term, 50 items, and the documents."""
    one = watched(reduced_motion="reduce", **mode)
    for name in names:
        one.page.goto("about:blank")
        one.page.goto(f"{one.address}/docs/" if name == "docs" else f"{one.address}/#/{name}")
        one.page.wait_for_selector(READY.get(name.split("?")[0], "h1"), timeout=90_000)
        one.settled()
        if (term := one.page.locator(".term button")).count():
            term.first.click()
        assert violations(one.page, colours) == [], name


@pytest.mark.parametrize("name", some(READY, ["home"]))
def test_the_documents_are_linked_from_every_page(watched, name):
    one = watched()
    one.open(name).locator("header").get_by_role("link", name="Documents").click()
    one.page.wait_for_url(f"{one.address}/docs/")


@pytest.mark.parametrize(
    ("fragment", "box", "text", "said"),
    spread([
        ("lookup", "[data-name=scale] input.box", "300", "“300” cannot be used: give a number from 0 to 200. 4"),
        ("lookup", "[data-name=q1]", "one", "“one” cannot be used: give a number from"),
        ("lookup", "[data-name=n] input.box", "6.5", "“6.5” cannot be used: give a whole number from 3 to 50."),
        ("lookup", "[aria-label='Part of a, as a number']", "", "Nothing is given: give a number from 1"),
        ("noise", "[data-name=n] input.box", "2", "“2” cannot be used: give a whole number from 3 to 100"),
        ("noise", "[data-name=radius] input.box", "1e400", "“1e400” cannot be used"),
    ], 4),
)  # fmt: skip
def test_a_number_that_cannot_be_used_is_named_in_place_and_stays(watched, fragment, box, text, said):
    one = watched()
    page = one.open(fragment)
    one.settled()
    field = page.locator(box)
    path = f"/api/{fragment}"
    before = one.last(path)
    field.fill(text)
    expect(page.locator(".wrong")).to_contain_text(said)
    assert field.get_attribute("aria-describedby") == page.locator(".wrong").get_attribute("id")
    page.keyboard.press("Tab")  # leaving the box does not put the old number back
    expect(field).to_have_value(text)
    expect(field).to_have_attribute("aria-invalid", "true")
    assert one.last(path) == before
    field.fill("1/2" if "radius" in box else "3")
    expect(page.locator(".wrong")).to_have_count(0)
    page.keyboard.press("Tab")
    expect(field).to_have_value("0.5" if "radius" in box else "3")


@pytest.mark.slow
def test_a_slider_takes_the_place_of_a_number_that_cannot_be_used(watched):
    page = watched().open("lookup")
    page.locator("[data-name=scale] input.box").fill("lots")
    expect(page.locator(".wrong")).to_be_visible()
    page.locator("[data-name=scale] input[type=range]").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".wrong")).to_have_count(0)
    expect(page.locator("[data-name=scale] input.box")).not_to_have_value("lots")


def test_a_refusal_that_ends_in_a_question_gets_no_full_stop(watched):
    page = watched().open("home")
    said = page.evaluate(
        """async () => { const { refusalText } = await import("/static/lib/api.js");
             return ["Ask, like: Where was Ada born?", "Give one", "Wait …"]
               .map((hint) => refusalText({ request: "asking", problem: "it is empty", hint })); }"""
    )
    assert said == [
        f"Asking: it is empty. {hint}" for hint in ("Ask, like: Where was Ada born?", "Give one.", "Wait …")
    ]


# Elements that reach beyond the right edge of the page's text, other than in boxes that scroll or hide what is too
# wide; a mark in a line of a sheet may end in a space that hangs, and a ring of focus takes 3 pixels.
BEYOND = """() => {
  const main = document.querySelector("main");
  const edge = main.getBoundingClientRect().right - parseFloat(getComputedStyle(main).paddingRight) + 3.5;
  const clips = (e) => e !== main && (getComputedStyle(e).overflowX !== "visible" || clips(e.parentElement));
  return [...main.querySelectorAll("*")]
    .filter((e) => !e.closest(".unseen, .katex, svg *, [hidden], mark") && !clips(e.parentElement))
    .filter((e) => e.getBoundingClientRect().right > edge)
    .map((e) => `${e.tagName} ${Math.round(e.getBoundingClientRect().right - edge)} ${e.textContent.slice(0, 40)}`);
}"""


@pytest.mark.parametrize(
    "names", [A_FEW, pytest.param(tuple(READY), marks=pytest.mark.slow)], ids=["a few pages", "every page"]
)
def test_nothing_leaves_its_column(watched, names):
    one = watched(reduced_motion="reduce")
    for name in names:
        one.page.set_viewport_size({"width": 375, "height": 900})
        page = one.open(name if name != "knowledge" else "knowledge?q=Where was Person 3 born?")
        page.wait_for_selector(".bits tbody tr" if name == "heads" else READY[name], timeout=90_000)
        for width in (375, 1100, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            one.settled()
            assert page.evaluate(BEYOND) == [], (name, width)
