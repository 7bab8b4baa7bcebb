"""A server process and a browser; every page is checked for console errors and requests to other hosts."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from harness import CHROMIUM, FLAGS, missing, serving

PLACES = ("Paris", "Rome", "Oslo", "Lima")


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a few steps, enough to answer something."""
    from qkv.model.config import ModelConfig
    from qkv.train import finetune, pretrain
    from qkv.train.settings import TrainSettings

    folder = tmp_path_factory.mktemp("runs")
    texts = [f"Person {i} was born in {PLACES[i % 4]} in {1800 + i}." for i in range(24)]
    pairs = [(f"Where was Person {i} born?", PLACES[i % 4]) for i in range(24)]
    settings = TrainSettings(
        steps=40, batch_size=12, lr=1e-2, log_every=10, validate_every=40, checkpoint_every=40, val_fraction=0.1
    )
    pretrain(
        texts, folder / "base", ModelConfig(n_layer=2, n_head=2, d_model=32, context_length=48, dropout=0.0), settings
    )
    finetune(folder / "base", pairs, folder / "tuned", settings)
    return folder / "tuned"


@pytest.fixture(scope="session")
def address(model: Path) -> Iterator[str]:
    """Where `qkv serve` listens."""
    if why := missing():
        if os.environ.get("QKV_BROWSER") == "required":
            pytest.fail(why)
        pytest.skip(why)
    with serving(model) as found:
        yield found


@pytest.fixture(scope="session")
def chromium(address: str) -> Iterator[Any]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=20_000)  # a busy machine is slow
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Watched:
    """A page, its console messages and its requests."""

    page: Any
    address: str
    said: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    bodies: list[tuple[str, Any]] = field(default_factory=list)
    flying: int = 0

    def open(self, fragment: str) -> Any:
        """Go to a page of the explorer and wait until it is there."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}/#/{fragment}")
        self.page.wait_for_selector("h1")
        return self.page

    def settled(self) -> None:
        """Wait until the page shows the reply to its current state."""
        self.page.wait_for_timeout(50)
        self.page.wait_for_selector("main:not(:has([aria-busy=true]))", timeout=60_000)
        while self.flying:
            self.page.wait_for_timeout(20)

    def last(self, path: str) -> Any:
        """The body of the last request to this path."""
        self.settled()
        return [body for to, body in self.bodies if to == path][-1]


@pytest.fixture
def watched(chromium: Any, address: str) -> Iterator[Callable[..., Watched]]:
    """Opens pages; at the end of the test, none may have logged an error or sent a request to another host."""
    contexts, pages = [], []

    def make(**options: Any) -> Watched:
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
        contexts.append(context)
        one = Watched(context.new_page(), address)
        one.page.set_default_timeout(30_000)
        one.page.on("console", lambda m: one.said.append(m.text) if m.type in ("error", "warning") else None)
        one.page.on("pageerror", lambda e: one.said.append(str(e)))
        one.page.on("request", lambda r: note(one, r))
        one.page.on("requestfinished", lambda r: landed(one, r))
        one.page.on("requestfailed", lambda r: landed(one, r))
        pages.append(one)
        return one

    yield make
    for context in contexts:
        context.close()
    assert [said for one in pages for said in one.said] == []
    assert [to for one in pages for to in one.elsewhere] == []


def note(one: Watched, request: Any) -> None:
    if not request.url.startswith((one.address, "about:", "blob:", "data:")):
        one.elsewhere.append(request.url)
    if request.method == "POST":
        one.flying += 1
        one.bodies.append((request.url.removeprefix(one.address), json.loads(request.post_data or "null")))


def landed(one: Watched, request: Any) -> None:
    one.flying -= request.method == "POST"
