"""The page of a suite as a browser shows it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bcl.cli import main

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed here")
def test_the_page_opens_in_a_browser_without_an_error(tmp_path: Path, table_store: Path) -> None:
    root = table_store
    main(["report", str(root)])

    def open_page(path: Path) -> tuple[str, str]:
        assert CHROMIUM is not None
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking"]
        flags += [
            "--enable-logging=stderr",
            "--v=0",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--window-size=1400,3000",
        ]
        done = subprocess.run(
            [CHROMIUM, *flags, f"--screenshot={tmp_path / 'page.png'}", path.as_uri()],
            capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "HOME": str(tmp_path)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return "\n".join(re.findall(r".*CONSOLE.*", done.stderr)), done.stderr

    console, _ = open_page(root / "report.html")
    assert console == ""
    assert_looks_like_a_page(tmp_path / "page.png")
    bad = tmp_path / "bad.html"
    bad.write_text((root / "report.html").read_text().replace("<script>", "<script>nonsense();"))
    assert "nonsense is not defined" in open_page(bad)[0], "the test would see an error"


def assert_looks_like_a_page(path: Path) -> None:
    """Wide enough, mostly white, with ink in its upper half and coloured swatches: not an empty or broken page."""
    import numpy as np
    from PIL import Image

    pixels = np.asarray(Image.open(path).convert("RGB"), dtype=int)
    assert pixels.shape[:2] == (3000, 1400)
    white = (pixels.min(2) > 250).mean()
    assert 0.5 < white < 0.99
    upper = pixels[:1500]
    assert (upper.max(2) < 90).mean() > 0.002, "there is text"
    assert ((upper.max(2) - upper.min(2)) > 100).mean() > 0.0003, "there is colour"
