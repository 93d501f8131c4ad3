"""The documentation site: it builds without a warning, lists every page, and loads nothing from elsewhere."""

from __future__ import annotations

import fcntl
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml

import bcl
from bcl.learners import METHODS

pytest.importorskip("mkdocs", reason="pip install 'bcl[docs]'")

ROOT = Path(__file__).parents[1]


class Lenient(yaml.SafeLoader):
    """mkdocs.yml without the meaning of its own tags."""


Lenient.add_multi_constructor("!", lambda *_: None)
NAVIGATION = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Lenient)["nav"]


def script(name: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / f"{name}.py"))


def entries(part: Any) -> Iterator[str]:
    for entry in part if isinstance(part, list) else [part]:
        if isinstance(entry, str):
            yield entry
        else:
            for below in entry.values():
                yield from entries(below)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `make site` does, warnings being errors, by the first process that asks; the reports are empty pages."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    place = base / "site"
    with (base / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            env = {**os.environ, "BCL_SITE_REPORTS": "false", "NO_MKDOCS_2_WARNING": "1"}
            words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(base / "new-site")]
            done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            (base / "new-site").rename(place)
    return place


def test_every_page_is_in_the_navigation_once() -> None:
    listed = list(entries(NAVIGATION))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert pages - set(listed) == set(), "not in the navigation of mkdocs.yml"
    assert len(listed) == len(set(listed))


def test_what_the_navigation_lists_is_a_page(site: Path) -> None:
    assert {entry for entry in entries(NAVIGATION) if not (site / entry).with_suffix(".html").exists()} == set()


class Found(HTMLParser):
    """The links and ids of a page, and what it loads."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag in ("script", "img", "link", "iframe", "source") and values.get("rel") not in (
            "canonical",
            "next",
            "prev",
        ):
            self.loaded += [values[name] for name in ("src", "href") if name in values]


def test_links_lead_to_pages_and_places_of_the_site(site: Path) -> None:
    pages = {page: Found(page) for page in site.rglob("*.html") if page.stat().st_size and page.name != "404.html"}
    assert len(pages) > 25
    wrong = []
    for page, found in pages.items():
        for link in found.links:
            path, _, place = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            there = (page.parent / unquote(path)).resolve() if path else page
            there = there / "index.html" if there.is_dir() else there
            if not there.exists() or (place and there in pages and unquote(place) not in pages[there].ids):
                wrong.append(f"{page.relative_to(site)}: {link}")
    assert wrong == []


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert [url for url in Found(page).loaded if re.match(r"(?:https?:)?//", url)] == [], page
    for sheet in [*site.rglob("*.css")]:
        assert not re.search(r"(?:url\(|@import)\s*[\"']?https?:", sheet.read_text(encoding="utf-8")), sheet


def test_the_reference_has_every_public_name_method_and_command(site: Path) -> None:
    package = (site / "reference" / "bcl.html").read_text(encoding="utf-8")
    assert [name for name in bcl.__all__ if f"bcl.{name}</code>" not in package] == []
    learners = Found(site / "reference" / "learners.html")
    assert {place.replace(":", ".") for place in METHODS.values()} <= learners.ids
    assert {"bcl-run", "bcl-suite-run", "bcl-data-import"} <= Found(site / "reference" / "commands.html").ids


def test_formulas_are_mathml(site: Path) -> None:
    page = (site / "beyond.html").read_text(encoding="utf-8")
    assert page.count("<math") > 10
    assert "arithmatex" not in page
    assert "<mtable" in page


@pytest.mark.parametrize("formula", [r"\begin{aligned}a &= b\end{aligned}", r"\frac{1}{2}", r"p_\theta^\tau(x)"])
def test_a_formula(formula: str) -> None:
    assert script("site_hooks")["mathml"](formula, block=True).startswith("<math")


def test_a_formula_that_is_not_understood_is_an_error() -> None:
    with pytest.raises(ValueError, match="not known to the converter"):
        script("site_hooks")["mathml"](r"\unheardof{x} & y", block=False)


def test_docstrings_as_markdown() -> None:
    made = script("site_docstrings")
    assert made["fenced"]("It adds.\n\n>>> 1 + 1\n2\n") == "It adds.\n\n\n```pycon\n>>> 1 + 1\n2\n```\n"
    assert made["no_references"]("a[i][j], `a[i][j]`") == r"a\[i\]\[j], `a[i][j]`"
