"""What the documentation shows is run: the code of README.md, quick-start.md, own-network.md and own-method.md."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bcl.cli import catalogue
from bcl.cli import run_command as command
from bcl.learners import METHODS
from bcl.report.summary import summarize
from bcl.streams import BENCHMARKS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: str, language: str = "python") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


def python(code: str, directory: Path) -> str:
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=directory, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def bcl(line: str, directory: Path) -> str:
    words = [sys.executable, "-m", "bcl", *line.split()[1:]]
    done = subprocess.run(words, cwd=directory, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_readme_learns_saves_loads_and_answers(tmp_path: Path) -> None:
    (code,) = blocks("README.md")
    said = python(code, tmp_path)
    assert float(said.rpartition(":")[2]) > 0.9
    assert (tmp_path / "learner.safetensors").exists()


def test_quick_start_in_python(tmp_path: Path) -> None:
    (code,) = blocks("docs/quick-start.md")
    assert "%" in python(code, tmp_path)


def test_own_network_on_the_command_line_and_in_python(tmp_path: Path) -> None:
    network, use, pretrained = blocks("docs/own-network.md")
    (tmp_path / "my_nets.py").write_text(network, encoding="utf-8")
    (line,) = blocks("docs/own-network.md", "bash")
    said = bcl(line, tmp_path)
    assert all(name in said for name in ("er", "icarl", "bcl-dual"))
    assert "[72, 10]" in python(use, tmp_path)
    weights = "import bcl, my_nets, torch\ns = bcl.benchmark('split-digits').stream(seed=0).setting\n"
    save = "torch.save(my_nets.small(s).body.state_dict(), 'my_weights.pth')\n"
    python(f"{weights}{save}{pretrained}\npretrained(s)", tmp_path)


@pytest.fixture
def mean_teacher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The method of docs/own-method.md, in a file beside the package, and its line in METHODS."""
    (code,) = blocks("docs/own-method.md")
    (tmp_path / "mean_teacher.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(METHODS, "mean-teacher", "mean_teacher:MeanTeacher")
    return "mean-teacher"


def test_own_method_learns_better_than_finetune(mean_teacher: str, tmp_path: Path) -> None:
    options = {"seeds": range(3), "out": tmp_path / "runs", "workers": 1, "device": "cpu", "scenario": "class"}
    results = command.run("split-digits", ["finetune", mean_teacher], **options)
    accuracy = {line["method"]: line["acc"]["mean"] for line in summarize(results)}
    assert accuracy[mean_teacher] > accuracy["finetune"] + 30


def test_own_method_is_saved_whole(mean_teacher: str, tmp_path: Path) -> None:
    import torch

    import bcl

    stream = bcl.benchmark("split-digits").stream(seed=0, samples=40)
    one, other = (bcl.method(mean_teacher)(bcl.build("mlp", stream.setting), stream.setting) for _ in range(2))
    for t in (0, 1):
        for x, y, _ in stream.batches(t):
            one.observe(x, y, t)
    bcl.save(one, tmp_path / "one.safetensors")
    bcl.load(other, tmp_path / "one.safetensors")
    for x, y, _ in stream.batches(2):
        one.observe(x, y, 2)
        other.observe(x, y, 2)
    x, _ = stream.test(0)
    assert torch.equal(one.predict(x, 0), other.predict(x, 0))


def test_own_method_is_listed_with_its_hyper_parameters(mean_teacher: str) -> None:
    row = next(row for row in catalogue.methods() if row["name"] == mean_teacher)
    assert row["reference"].startswith("after Tarvainen")
    assert set(row["hyper"]) == {"lr", "replay_batch", "decay", "consistency"}


def test_the_table_of_methods_is_that_of_the_program() -> None:
    text = (ROOT / "docs/methods.md").read_text(encoding="utf-8")
    for m in catalogue.methods():
        row = f"| `{m['name']}` | {m['reference']} | {m['memory']} | {m['cost']} | {', '.join(m['scenarios'])} |"
        assert row in text, f"docs/methods.md should have the line:\n{row}"


def test_the_readme_names_every_method_and_benchmark() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for m in catalogue.methods():
        assert re.search(rf"^\| `{re.escape(m['name'])}` .*\| {', '.join(m['scenarios'])} \|$", text, re.MULTILINE)
    for b in BENCHMARKS.values():
        assert re.search(
            rf"^\| `{b.name}` \| {b.learning_tasks} .*\| {b.scenario} .*\| {b.memory} \|", text, re.MULTILINE
        )


def test_every_option_of_fidelity_exists_with_its_values() -> None:
    hyper = {field.name: field for field in dataclasses.fields(_bcl_dual_hyper())}
    text = (ROOT / "docs/fidelity.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| `(\w+)=(\w+)`, `(\w+)` \|", text)
    assert len(rows) == 9
    for name, default, other in rows:
        assert str(hyper[name].default).lower() == default
        assert _bcl_dual_hyper().of({name: other}) != _bcl_dual_hyper()()


def _bcl_dual_hyper() -> type:
    from bcl.learners.bcl import BCLDualHyper

    return BCLDualHyper


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_records_exist(page: Path) -> None:
    text = re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
    for record in re.findall(r"bench/[\w/.-]+\.(?:txt|py|sh)", text):
        assert (ROOT / record).exists(), f"{page.name} names {record}"
