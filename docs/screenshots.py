"""Take the pictures of the explorer that the README and docs/explorer.md show: `python docs/screenshots.py`."""

import argparse
import io
import json
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "web" / "browser"))

from harness import CHROMIUM, FLAGS, missing, serving  # noqa: E402

COLOURS = 128
"""Colours of a picture: enough for plain areas and text, and the files are small."""

RUNS = Path("runs", "explorer")
"""The folder for kept models that the page names; nothing is kept."""

# By page: its state, the button to press, what to wait for, and the height of the picture.
PAGES = {
    "home": ("home", None, ".moving [data-weight]", 1000),
    "lookup": ("lookup", "Blend these", ".found.yes", 1180),
    "proof": ('lookup?layout=inside&n=7&wanted={"a":1}', "Copy this", ".proof polygon", 860),
    "noise": ("noise", None, ".layout .chart svg", 1060),
    "wiring": ("wiring?beta=1.4", None, ".derivation .katex-html", 1080),
    "claims": ("claims?open=average%20%231", None, ".verdict .katex-html", 860),
    "sheets": ("sheets", None, ".sheet .note .katex-html", 1560),
    "heads": ("heads?model=built-in example", None, ".bits tbody tr", 1240),
    "knowledge": ("knowledge?q={question}&model={model}", None, "[data-fact=badge]", 940),
}


def take(
    browser: Any, address: str, out: Path, model: str, question: str, pages: tuple[str, ...] = tuple(PAGES)
) -> list[Path]:
    """One picture per page, as a PNG with few colours."""
    context = browser.new_context(
        viewport={"width": 1240, "height": 900}, color_scheme="light", reduced_motion="reduce"
    )
    written = []
    for name in pages:
        state, press, seen, height = PAGES[name]
        page = context.new_page()
        page.goto(f"{address}/#/{state.replace('{question}', question).replace('{model}', model)}")
        if press:
            page.get_by_role("button", name=press).click()
        page.wait_for_selector(seen, timeout=60_000)
        page.wait_for_selector("main:not(:has([aria-busy=true]))")
        page.evaluate("document.fonts.ready.then(() => {})")
        page.wait_for_timeout(400)
        shown = page.evaluate("document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": 1240, "height": min(height, shown)}
        path = out / f"explorer-{name}.png"
        path.write_bytes(compressed(page.screenshot(full_page=True, clip=clip)))
        written.append(path)
        page.close()
    context.close()
    return written


def compressed(picture: bytes) -> bytes:
    """The picture with few colours."""
    from PIL import Image

    small = io.BytesIO()
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
    return small.getvalue()


def train(address: str) -> tuple[str, str]:
    """Trains a model as the page does; gives its name and a question that it was asked in training."""
    job = f"{address}/api/jobs"
    identifier = fetch(job, {"kind": "train", "people": 50, "steps": 600})["id"]
    while (found := fetch(f"{job}/{identifier}"))["status"] == "running":
        time.sleep(1)
    if found["status"] != "done":
        sys.exit(f"training {found['status']}: {found['error']}")
    return found["result"]["model"], found["result"]["questions"][0]["question"]


def fetch(address: str, body: Any = None) -> Any:
    headers = {"content-type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(address, data=data, headers=headers)) as reply:
        return json.load(reply)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures")
    out = parser.parse_args().out
    if why := missing():
        sys.exit(why)
    from playwright.sync_api import sync_playwright

    with serving(runs=RUNS) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for path in take(browser, address, out, *train(address)):
            sys.stdout.write(f"{path.name}: {path.stat().st_size // 1000} kB\n")
        browser.close()


if __name__ == "__main__":
    main()
