"""The page of a suite as a browser shows it, with a pointer, with keys alone, in the dark and without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import CHROMIUM, Page, browser

from bcl.cli import main

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed here")
LIT = "[...document.querySelectorAll('svg .lit')].map(one => one.dataset.row)"
TIP = "document.querySelector('.tip.shown')?.textContent ?? ''"
OVER_TIME = 1  # of the figures
ER = 1  # of the rows that have runs


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def report(table_store: Path) -> Path:
    assert main(["report", str(table_store)]) == 0
    return table_store / "report.html"


def spot(page: Page, row: int) -> tuple[float, float]:
    """Where the last point of a row's line is on the screen, and beside it."""
    page.value("document.querySelector('.figures').scrollIntoView()")
    plot = f"document.querySelectorAll('.plot')[{OVER_TIME}]"
    left, top, wide, tall = page.value(
        f"(() => {{ const r = {plot}.querySelector('svg').getBoundingClientRect(); "
        "return [r.left, r.top, r.width, r.height]; })()"
    )
    _, x, y, _ = [hint for hint in page.value(f"JSON.parse({plot}.dataset.hints)") if hint[0] == row][-1]
    return left + x * wide + 3, top + y * tall - 3


def test_no_error_and_the_test_would_see_one(page: Page, report: Path) -> None:
    page.console.clear()
    page.open(report)
    assert page.console == []
    bad = report.with_name("bad.html")
    bad.write_text(report.read_text().replace("<script>", "<script>nonsense();"))
    page.open(bad)
    assert any("nonsense is not defined" in line for line in page.console)


def test_the_pointer_lights_up_a_method_and_names_its_point(page: Page, report: Path) -> None:
    page.open(report)
    bands = "[...document.querySelectorAll('.plot .band')].map(one => getComputedStyle(one).display)"
    assert page.value(bands) == ["inline"] * 3, "few enough to be shown at once"
    page.value("document.querySelector('.bands').click()")
    assert page.value(bands) == ["none"] * 3
    x, y = spot(page, ER)
    page.point(x, y)
    assert page.value(TIP) == "er after task 2: 62.5 ± 0.5 %"
    assert set(page.value(LIT)) == {str(ER)}
    assert page.value(bands) == ["none", "inline", "none"], "of finetune, er and bcl-dual"
    page.point(5, 5)
    assert page.value(TIP) == ""
    assert page.value(LIT) == []
    page.point(x, y, click=True)
    page.point(5, 5)
    assert set(page.value(LIT)) == {str(ER)}, "a click makes it stay"


def test_the_legend_hides_and_shows(page: Page, report: Path) -> None:
    page.open(report)
    hidden = "[...new Set([...document.querySelectorAll('svg .off')].map(one => one.dataset.row))]"
    page.value(f"document.querySelectorAll('.chip')[{ER}].click()")
    assert page.value(hidden) == [str(ER)]
    assert page.value(f"document.querySelectorAll('.chip')[{ER}].getAttribute('aria-pressed')") == "false"
    page.point(*spot(page, ER))
    assert not page.value(TIP).startswith("er "), "what is hidden is not named"
    page.value("document.querySelector('.none').click()")
    assert page.value(hidden) == ["0", "1", "2", "3"]
    page.value("document.querySelector('.all').click()")
    assert page.value(hidden) == []


def test_keys_alone_will_do(page: Page, report: Path) -> None:
    page.open(report)
    page.value(f"document.querySelectorAll('.plot')[{OVER_TIME}].focus()")
    for key in ("ArrowRight", "ArrowRight"):
        page.press(key)
    assert page.value(TIP).startswith("finetune after task 2: 34.0")
    page.press("ArrowDown")
    assert page.value(TIP).startswith("er after task 2: 62.5")
    page.press("Enter")
    page.value("document.activeElement.blur()")
    assert set(page.value(LIT)) == {str(ER)}
    page.value(f"document.querySelectorAll('.plot')[{OVER_TIME}].focus()")
    page.press("Escape")
    assert page.value(LIT) == []
    page.value("document.querySelector('.results thead th:nth-child(2)').focus()")
    page.press("Enter")
    assert page.value("document.querySelector('.results tbody th').innerText.trim()") == "bcl-dual", "sorted by ACC"


def test_it_is_dark_where_the_reader_wants_it_dark(page: Page, report: Path) -> None:
    def colours() -> list[str]:
        looks = ["getComputedStyle(document.body).backgroundColor", "getComputedStyle(document.body).color"]
        looks += ["getComputedStyle(document.querySelector('svg text')).fill"]
        return [str(page.value(look)) for look in looks]

    page.open(report)
    assert colours()[:2] == ["rgb(255, 255, 255)", "rgb(31, 41, 55)"]
    page.open(report, dark=True)
    paper, ink, letters = colours()
    assert paper == "rgb(20, 24, 31)"
    assert min(int(part) for part in ink[4:-1].split(",")) > 200
    assert min(int(part) for part in letters[4:-1].split(",")) > 140, "the figures follow"


def test_the_head_and_the_names_stay_while_a_table_is_scrolled(page: Page, report: Path) -> None:
    page.open(report, width=400, height=300)
    moved = "document.querySelector('.scroll').scrollTo(300, 120)"
    where = "(() => { const r = document.querySelector('{}').getBoundingClientRect(); return [r.left, r.top]; })()"
    before = [page.value(where.replace("{}", one)) for one in (".results tbody th", ".results thead th:nth-child(3)")]
    page.value(moved)
    after = [page.value(where.replace("{}", one)) for one in (".results tbody th", ".results thead th:nth-child(3)")]
    assert after[0][0] == before[0][0], "names stay at the left"
    assert after[1][1] == before[1][1], "headings stay at the top"
    assert after[1][0] < before[1][0] - 100, "it was scrolled"
    wide = "document.documentElement.scrollWidth"
    assert page.value(wide) <= 400, "the page itself does not scroll sideways"


def test_a_long_name_leaves_room_for_the_figures_on_a_small_screen(page: Page, tmp_path: Path, make_suite) -> None:
    long = {"method": "er", "label": "experience replay with nothing else beside it", "shifts": [1.0, 2.0]}
    store = make_suite(tmp_path / "store", [long, {"method": "finetune", "shifts": [-1.0, -2.0]}])
    assert main(["report", str(store)]) == 0
    page.open(store / "report.html", width=390)
    assert page.value("document.querySelector('.results tbody th').offsetWidth") < 390 / 2
    assert page.value("document.querySelector('.settings td').offsetWidth") > 300, "below the name, not beside it"


def test_without_scripts_it_can_be_read(page: Page, report: Path, tmp_path: Path) -> None:
    page.open(report, height=3000, scripts=False)
    assert_looks_like_a_page(page.picture(tmp_path / "page.png"))
    page.open(report)
    assert page.paper(tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


def assert_looks_like_a_page(path: Path) -> None:
    """Mostly white, with ink in its upper half and coloured swatches: not an empty or broken page."""
    import numpy as np
    from PIL import Image

    pixels = np.asarray(Image.open(path).convert("RGB"), dtype=int)
    assert pixels.shape[:2] == (3000, 1200)
    white = (pixels.min(2) > 250).mean()
    assert 0.5 < white < 0.99
    upper = pixels[:1500]
    assert (upper.max(2) < 90).mean() > 0.002, "there is text"
    assert ((upper.max(2) - upper.min(2)) > 100).mean() > 0.0003, "there is colour"
