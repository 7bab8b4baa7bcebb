"""The script that takes the pictures of the documents."""

import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api")

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_the_script_takes_every_picture_that_the_documents_show(chromium, address, tmp_path):
    sys.path.insert(0, str(ROOT / "docs"))
    import screenshots
    from PIL import Image

    documents = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "".join(document.read_text(encoding="utf-8") for document in documents)
    shown = set(re.findall(r"pictures/(explorer-\w+\.png)\)", text))
    taken = screenshots.take(chromium, address, tmp_path, "tiny", "Where was Person 3 born?")
    assert (
        {path.name for path in taken}
        == shown
        == {path.name for path in (ROOT / "docs" / "pictures").glob("explorer-*")}
    )
    for path in taken:
        picture = Image.open(path).convert("L")
        assert picture.width == 1240 and picture.height > 600
        assert path.stat().st_size < 120_000 and (ROOT / "docs" / "pictures" / path.name).stat().st_size < 120_000
        darkest, lightest = picture.getextrema()
        assert darkest < 60 and lightest > 230  # ink on paper, not a blank page
