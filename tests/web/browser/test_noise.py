"""Noise in a browser: exact moments beside samples, for three layouts of heads."""

import numpy as np
import pytest

from qkv import Memory
from qkv.core.show import number
from qkv.noise import Gaussian, spread

expect = pytest.importorskip("playwright.sync_api").expect


def test_a_slider_shows_the_variance_of_the_library(watched):
    one = watched()
    page = one.open("noise")
    page.locator("[data-name=along] input[type=range]").focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    body = one.last("/api/noise")
    assert body["along"] > 0.5
    memory = Memory(np.eye(body["n"]))
    noise = Gaussian(isotropic=body["isotropic"], along={0: body["along"]})
    q = body["scale"] * (memory.keys[0] + memory.keys[1])
    exact = spread(memory, q, noise)
    expect(page.locator("[data-fact='one head mean']")).to_have_text(number(float(exact.weights_mean[0])))
    expect(page.locator("[data-fact='one head variance']")).to_have_text(number(float(exact.weights_var[0])))
    two = spread(memory, [body["scale"] * memory.keys[0], body["scale"] * memory.keys[1]], noise)
    expect(page.locator("[data-fact='two heads variance']")).to_have_text(number(float(two.weights_var[0])))
    hardened = float(page.locator("[data-fact='hardened variance']").inner_text())
    assert hardened < float(two.weights_var[0]) / 100


def test_as_many_dots_as_samples_and_new_ones_on_drawing_again(watched):
    one = watched()
    page = one.open("noise?samples=60")
    dots = page.locator(".arm >> nth=0").locator("[aria-label=dot] circle")
    expect(dots).to_have_count(60)
    before = dots.first.get_attribute("cx")
    page.get_by_role("button", name="Draw again").click()
    one.settled()
    expect(dots).to_have_count(60)
    assert dots.first.get_attribute("cx") != before


def test_a_fast_slider_never_queues_and_ends_on_the_newest(watched):
    one = watched()
    page = one.open("noise?n=50")
    one.settled()
    before = len(one.bodies)
    slider = page.locator("[data-name=scale] input[type=range]")
    slider.evaluate(
        """(slider) => { for (let i = 0; i < 80; i++) {
             slider.value = 2 + i / 10; slider.dispatchEvent(new Event("input", { bubbles: true })); } }"""
    )
    body = one.last("/api/noise")
    assert body["scale"] == pytest.approx(9.9)
    assert len(one.bodies) - before < 40
    memory = Memory(np.eye(50))
    exact = spread(memory, 9.9 * (memory.keys[0] + memory.keys[1]), Gaussian(isotropic=1e-6, along={0: 0.5}))
    expect(page.locator("[data-fact='one head variance']")).to_have_text(number(float(exact.weights_var[0])))


def test_a_late_reply_never_replaces_a_newer_one(watched):
    one = watched()
    page = one.open("noise")
    one.settled()
    held = []
    page.route("**/api/noise", lambda route: held.append(route) if not held else route.continue_())
    box = page.locator("[data-name=n] input.box")
    box.fill("12")
    page.wait_for_timeout(200)
    box.fill("20")  # waits behind the one that is held, then gives up on it
    memory = Memory(np.eye(20))
    exact = spread(memory, 6 * (memory.keys[0] + memory.keys[1]), Gaussian(isotropic=1e-6, along={0: 0.5}))
    expect(page.locator("[data-fact='one head variance']")).to_have_text(number(float(exact.weights_var[0])))
    page.unroute("**/api/noise")


def test_a_refusal_is_a_sentence_in_place(watched):
    one = watched()
    page = one.open("noise")
    one.settled()
    told = {"asked": "reading under noise", "came": "too many requests are waiting", "try": "Try again"}
    page.route("**/api/noise", lambda route: route.fulfill(status=503, json={"error": told}))
    page.locator("[data-name=n] input.box").fill("12")
    expect(page.locator(".problem")).to_have_text("Reading under noise: too many requests are waiting. Try again.")
    expect(page.locator("[data-fact='one head variance']")).to_be_visible()
    page.unroute("**/api/noise")
    page.locator("[data-name=n] input.box").fill("13")
    expect(page.locator(".problem")).to_have_count(0)
    one.said = [said for said in one.said if "503" not in said]  # the browser reports the refusal that was staged
