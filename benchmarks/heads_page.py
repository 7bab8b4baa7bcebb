"""The page Heads in a browser: time to draw a head of 512 tokens after its capture, and of one move at 128 tokens.

`python benchmarks/heads_page.py --model models/smollm2` takes a model folder; without one, a random GPT-2 is made. The
capture (the model's run and the survey of all its heads) is reported, and has no bar.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "web" / "browser"))

from harness import CHROMIUM, FLAGS, missing, serving

BARS = {"drawn_512_ms": 2000.0, "move_128_ms": 100.0}
WORDS = "the cat saw a dog near old town hall and ran to its house by river while birds sang in trees".split()  # noqa: SIM905 (to read)

# Milliseconds from a click on another head until its arcs have been painted.
HEAD = """async (name) => {
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  const began = performance.now(), before = document.querySelector(".arcs .arc")?.getAttribute("d");
  document.querySelector(`button[data-head="${name}"]`).click();
  while (document.querySelector(".one-head")?.dataset.head !== name || !document.querySelector(".arcs .arc")
    || document.querySelector(".arcs .arc").getAttribute("d") === before) {
    if (performance.now() - began > 60000) break;
    await frame();
  }
  await frame();
  return performance.now() - began;
}"""

# Milliseconds from each move of the token until its arcs have been painted.
MOVE = """async (places) => {
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  const slider = document.querySelector("[data-name=token] input[type=range]"), times = [];
  for (const place of places) {
    const began = performance.now();
    slider.value = place;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    const shown = () => document.querySelector(".front").dataset.shown;
    while (shown() !== String(place) && performance.now() - began < 5000) await frame();
    times.push(performance.now() - began);
    await new Promise((done) => setTimeout(done, 60));
  }
  return times;
}"""


def random_model(folder: Path) -> Path:
    """A GPT-2 of 6 layers of 8 heads with random weights, and a tokenizer of words."""
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=32, n_embd=256, n_layer=6, n_head=8, n_positions=512)
    model = transformers.GPT2LMHeadModel(config)
    for weights in model.parameters():
        if weights.dim() > 1:
            torch.nn.init.normal_(weights, std=0.3)
    model.save_pretrained(folder)
    vocabulary = {word: i for i, word in enumerate(["[pad]", *dict.fromkeys(WORDS)])}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="[pad]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[pad]").save_pretrained(folder)
    return folder


def opened(browser: Any, address: str, text: str) -> tuple[Any, float]:
    """The page with all heads of a text, and how many seconds that took: opening the model once, and the capture."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    began = time.perf_counter()
    page.goto(f"{address}/#/heads?model=tiny&layer=0&head=0&token=5&text={text.replace(' ', '+')}")
    page.wait_for_selector(".arcs svg", timeout=300_000)
    page.wait_for_selector("main:not(:has([aria-busy=true]))", timeout=300_000)
    return page, time.perf_counter() - began


def text_of(tokens: int) -> str:
    return " ".join(WORDS[(7 * i + i // 5) % len(WORDS)] for i in range(tokens))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--moves", type=int, default=30)
    options = parser.parse_args()
    if why := missing():
        sys.exit(why)
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder:
        model = options.model or random_model(Path(folder))
        with serving(model) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            found: dict[str, Any] = {"model": "random GPT-2" if options.model is None else options.model.name}
            for tokens in (128, 512):
                page, seconds = opened(browser, address, text_of(tokens))
                shown = page.locator(".shaded span").count()
                found[f"tokens_{tokens}"], found[f"capture_{tokens}_s"] = shown, round(seconds, 1)
                heads = [page.evaluate(HEAD, name) for name in ("1.1", "2.2", "3.3")]
                found[f"drawn_{tokens}_ms"] = round(statistics.median(heads), 1)
                page.wait_for_selector("main:not(:has([aria-busy=true]))", timeout=300_000)
                places = [10 + (7 * i) % (shown - 20) for i in range(options.moves)]
                found[f"move_{tokens}_ms"] = round(statistics.median(page.evaluate(MOVE, places)), 1)
                drawn, moved = found[f"drawn_{tokens}_ms"], found[f"move_{tokens}_ms"]
                print(f"{shown} tokens: a head drawn in {drawn} ms (median of 3), a move in {moved} ms (median)")
                print(f"    first view after {seconds:.1f} s, with the model opened and captured")
                page.context.close()
            browser.close()
    met = all(found[name] < bar for name, bar in BARS.items())
    print(json.dumps({**found, "bars": BARS, "met": met}))


if __name__ == "__main__":
    main()
