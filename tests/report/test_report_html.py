from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from bcl.errors import InputError, StorageError
from bcl.report.grouping import from_results
from bcl.report.page import write_report as write_study
from bcl.report.read import read_study


def write_report(results, path, title=""):
    return write_study(from_results(results, title), path)[0]


VOID = {"meta", "br", "link", "img", "input", "hr"}


class Checker(HTMLParser):
    """Every element is closed where it should be, and nothing is fetched from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.scripts = 0
        self.ids: list[str] = []
        self.attributes: set[str] = set()

    def handle_starttag(self, tag, attributes):
        self.scripts += tag == "script"
        self.attributes |= {name for name, _ in attributes}
        self.ids += [value for name, value in attributes if name == "id"]
        for name, value in attributes:
            if name in ("src", "href", "xlink:href"):
                assert value.startswith(("#", "data:")), value
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def checked(path) -> tuple[str, Checker]:
    page, checker = path.read_text(encoding="utf-8"), Checker()
    checker.feed(page)
    assert checker.open == []
    without_namespaces = re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)
    assert not re.search(r"https?://|@import|url\(\s*['\"]?(?!#)", without_namespaces)
    return page, checker


def test_the_page_says_what_was_run(results, tmp_path):
    page, checker = checked(write_report(results, tmp_path / "report.html"))
    assert page.count("<svg") == 4
    assert len([name for name in checker.ids if name.startswith("section")]) == 1
    assert "4 methods on split-digits (task-incremental) with 2 tasks: 12 runs" in page
    (leader,) = re.findall(r'<tr class="best">.*?</tr>', page, flags=re.DOTALL)
    assert "bcl-dual" in leader
    assert "81.00 ± 1.00" in leader
    (bound,) = re.findall(r'<tbody class="bound">.*?</tbody>', page, flags=re.DOTALL)
    assert "94.00 ± 1.00" in bound
    assert bound.count(">–<") == 3  # FM, LA, p
    for run in results:
        assert run["command"] in page
    for fact in ("2.13.0", "a laptop", "lr <b>0.1</b>", "samples per task"):
        assert fact in page


def test_the_same_results_give_the_same_page(results, tmp_path):
    pages = [write_report(results, tmp_path / name).read_bytes() for name in ("a.html", "b.html")]
    assert pages[0] == pages[1]


def test_hostile_names_are_text(result, tmp_path):
    bad = "<script>alert('&')</script>"
    run = result(bad, benchmark=bad, scenario=bad, id=bad, hardware=bad, command=bad, versions={bad: bad})
    run["config"] = {"hyper": {bad: bad}, "net": bad}
    page, checker = checked(write_report([run], tmp_path / "report.html", title=bad))
    assert checker.scripts == 1  # the page's own
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page


def test_what_a_point_says_is_text(tmp_path, make_suite):
    bad = "x' onpointermove='alert(1)"
    lines = [{"method": "er", "shifts": [0.0], "settings": {bad: size}} for size in (1, 2)]
    write_study(read_study(make_suite(tmp_path, lines, axis=bad)), tmp_path / "report.html")
    page, checker = checked(tmp_path / "report.html")
    assert "onpointermove" not in checker.attributes
    assert "x&#39; onpointermove=&#39;alert(1) 2: 75.00 %" in page


def test_one_seed_of_one_task(result, tmp_path):
    runs = [result(accuracy_matrix=[[90.0]]), result("offline", accuracy_matrix=[[95.0]])]
    page, _ = checked(write_report(runs, tmp_path / "report.html"))
    assert page.count("<svg") == 1  # there is no time to plot over
    assert "±" not in page


def test_a_result_with_only_what_is_required(tmp_path):
    run = {"benchmark": "b", "scenario": "class", "method": "m", "seed": 0, "acc": 50.0, "accuracy_matrix": [[50.0]]}
    checked(write_report([run], tmp_path / "report.html"))


def test_a_small_difference_is_called_small(result, tmp_path):
    close = [
        result(method, seed, shift=9.0 * seed + gap) for method, gap in (("er", 0.0), ("gem", 1.0)) for seed in (0, 1)
    ]
    page, _ = checked(write_report(close, tmp_path / "report.html"))
    assert "smaller than the spread between seeds" in page
    clear = [result(method, seed, shift=seed + gap) for method, gap in (("er", 0.0), ("gem", 8.0)) for seed in (0, 1)]
    page, _ = checked(write_report(clear, tmp_path / "report.html"))
    assert "smaller than the spread" not in page


def test_nothing_to_report_and_nowhere_to_write(results, tmp_path):
    with pytest.raises(InputError, match="no results"):
        write_report([], tmp_path / "report.html")
    with pytest.raises(StorageError):
        write_report(results[:1], tmp_path / "missing" / "report.html")
