"""What the documentation shows is run: the code of README.md, quick-start.md, own-network.md and own-method.md."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bcl.cli import catalogue
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
    wide = {**os.environ, "COLUMNS": "100"}  # names stay whole
    done = subprocess.run(words, cwd=directory, env=wide, capture_output=True, text=True, timeout=120, check=False)
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


def test_any_stream(tmp_path: Path) -> None:
    one, by_name, learner, boundaries, tasks = (python(code, tmp_path) for code in blocks("docs/any-stream.md"))
    first, second = one.splitlines()
    assert float(first.rpartition(":")[2]) > 0.9
    assert second == "same answers: True, samples so far: 1200"
    assert by_name == "tall ['small', 'tall']\n"
    right, stored, restored = learner.splitlines()
    assert int(right.split()[0]) >= 20, right
    assert (right.split(", ")[1], stored, restored) == ("32 columns", "3000 stored, room for 4096", "ER True")
    none, drift = (int(line.split()[1]) for line in boundaries.splitlines())
    assert drift > none
    assert "3 stretches" in boundaries
    assert tasks == "torch.Size([1, 5])\n"


def test_own_method_is_checked_run_tuned_timed_and_used_by_the_commands_of_the_page(tmp_path: Path) -> None:
    code, use = blocks("docs/own-method.md")
    (tmp_path / "mean_teacher.py").write_text(code, encoding="utf-8")
    said = {
        line.split()[1]: bcl(line, tmp_path)
        for block in blocks("docs/own-method.md", "bash")
        for line in block.strip().splitlines()
    }
    assert set(said) == {"check", "run", "report", "tune", "speed", "list"}
    assert "FAILED" not in said["check"]
    assert all("mean_teacher:MeanTeacher" in said[command] for command in ("run", "tune", "speed", "list"))
    assert "mean_teacher:MeanTeacher" in (tmp_path / "runs/mine/report.html").read_text(encoding="utf-8")
    assert all(name in said["list"] for name in ("replay_batch", "consistency", "weight of the distance"))
    results = [json.loads(path.read_text()) for path in tmp_path.glob("runs/mine/*/result.json")]
    accuracy = {line["method"]: line["acc"]["mean"] for line in summarize(results)}
    assert accuracy["mean_teacher:MeanTeacher"] > accuracy["finetune"] + 30
    table = (ROOT / "docs/own-method.md").read_text(encoding="utf-8")
    assert f"{accuracy['mean_teacher:MeanTeacher']:.2f} ±" in table, "the page shows what the command prints"
    assert (tmp_path / "runs/hyper.yaml").exists()
    assert python(use, tmp_path).startswith("ACC ")


def test_the_table_of_methods_is_that_of_the_program() -> None:
    text = (ROOT / "docs/methods.md").read_text(encoding="utf-8")
    for m in catalogue.methods():
        row = f"| `{m['name']}` | {m['reference']} | {m['memory']} | {m['cost']} | {', '.join(m['scenarios'])} |"
        assert row in text, f"docs/methods.md should have the line:\n{row}"


def test_the_page_of_methods_says_who_needs_boundaries() -> None:
    text = (ROOT / "docs/methods.md").read_text(encoding="utf-8")
    needing = [m for m in catalogue.methods() if m["boundaries"] != "not needed"]
    assert needing
    for m in needing:
        assert f"| `{m['name']}` | {m['boundaries'].removeprefix('needed: ')} |" in text


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
