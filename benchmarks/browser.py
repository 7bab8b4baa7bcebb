"""Latency of the explorer in a browser: the first page (Home, and Lookup), frames of Home, slider moves at n = 50."""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "web" / "browser"))

from harness import CHROMIUM, FLAGS, missing, serving

BARS = {"slider_ms": 100.0, "first_page_ms": 1000.0, "first_page_kb": 600.0}

# By page: its address, and what must be drawn.
FIRST = {"home": ("/", (".moving [data-weight]",)), "lookup": ("/#/lookup", ("[data-weight]", ".chart svg"))}

# Milliseconds from one frame of the picture on Home to the next.
FRAMES = """(n) => new Promise((done) => {
  const times = [];
  let last = null;
  const step = (now) => {
    if (last !== null) times.push(now - last);
    last = now;
    times.length < n ? requestAnimationFrame(step) : done(times);
  };
  requestAnimationFrame(step);
})"""

# Times from the input event until the number of the reply has been painted.
MOVE = """async ([selector, seen, values]) => {
  const slider = document.querySelector(selector), target = () => document.querySelector(seen)?.textContent;
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  const times = [];
  for (const value of values) {
    const before = target(), began = performance.now();
    slider.value = value;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    while (target() === before && performance.now() - began < 5000) await frame();
    times.push(performance.now() - began);
    await new Promise((done) => setTimeout(done, 60));
  }
  return times;
}"""

SLIDERS = {
    "lookup": (
        "lookup?n=50&scale=3&query=[1.7,0.3]",
        "[data-name=scale] input[type=range]",
        "[data-fact=leak]",
        lambda i: 150 + 3 * i,
    ),
    "noise": (
        "noise?n=50",
        "[data-name=scale] input[type=range]",
        "[data-fact='two heads variance']",
        lambda i: 2 + 0.3 * i,
    ),
}


def first_page(browser: Any, address: str, name: str) -> tuple[float, float]:
    """Milliseconds until a page is drawn, and kilobytes transferred; nothing is cached."""
    path, drawn = FIRST[name]
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    replies: list[Any] = []
    page.on("response", lambda r: replies.append(r.request))
    began = time.perf_counter()
    page.goto(f"{address}{path}")
    for selector in drawn:
        page.wait_for_selector(selector)
    took = 1000 * (time.perf_counter() - began)
    page.wait_for_load_state("networkidle")
    size = sum(s["responseBodySize"] + s["responseHeadersSize"] for s in (r.sizes() for r in replies))
    page.context.close()
    return took, size / 1000


def frame_ms(browser: Any, address: str) -> float:
    """Median time between two frames of the picture on Home."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.goto(f"{address}/")
    page.wait_for_selector(".moving [data-weight]")
    times = page.evaluate(FRAMES, 120)
    page.context.close()
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moves", type=int, default=40)
    moves = parser.parse_args().moves
    if why := missing():
        sys.exit(why)
    from playwright.sync_api import sync_playwright

    with serving() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        found: dict[str, Any] = {}
        for name in FIRST:
            loads = [first_page(browser, address, name) for _ in range(5)]
            found[f"{name}_first_ms"] = round(statistics.median(t for t, _ in loads), 1)
            found[f"{name}_first_kb"] = round(max(kb for _, kb in loads), 1)
            print(f"first page {name}: {found[f'{name}_first_ms']} ms (median of 5), {found[f'{name}_first_kb']} kB")
        found["home_frame_ms"] = round(frame_ms(browser, address), 1)
        print(f"picture of Home: {found['home_frame_ms']} ms a frame (median of 120)")
        for name, (fragment, selector, seen, value) in SLIDERS.items():
            page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            page.goto(f"{address}/#/{fragment}")
            page.wait_for_selector(seen)
            page.wait_for_selector(".chart svg")
            page.wait_for_timeout(300)
            times = page.evaluate(MOVE, [selector, seen, [value(i) for i in range(moves)]])
            median = statistics.median(times)
            found[f"{name}_ms"] = round(median, 1)
            found[f"{name}_p90_ms"] = round(sorted(times)[int(0.9 * len(times))], 1)
            slow = found[f"{name}_p90_ms"]
            print(f"{name}: {median:.1f} ms a slider move at n = 50 (median of {moves}), 9 of 10 within {slow} ms")
            page.context.close()
        browser.close()
    met = {
        "slider": max(found["lookup_ms"], found["noise_ms"]) < BARS["slider_ms"],
        "first_page": all(
            found[f"{n}_first_ms"] < BARS["first_page_ms"] and found[f"{n}_first_kb"] < BARS["first_page_kb"]
            for n in FIRST
        ),
    }
    print(json.dumps({**found, "bars": BARS, "met": all(met.values())}))


if __name__ == "__main__":
    main()
