"""The pages on text, frozen backbones and the service: what they show is run, and is what they say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


def write(code: str, directory: Path) -> str:
    """A block as the file that its first line names."""
    name = re.match(r"# (\w+\.py)\n", code)
    assert name, code
    (directory / name[1]).write_text(code, encoding="utf-8")
    return name[1]


def run(words: list[str], directory: Path) -> str:
    env = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT), env.get("PYTHONPATH", "")])
    done = subprocess.run(words, cwd=directory, env=env, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def figures(text: str) -> dict[str, float]:
    """`name 12.3 %` by name."""
    return {name: float(value) for name, value in re.findall(r"^([\w+-]+) +(\d+\.\d) %", text, re.MULTILINE)}


@pytest.mark.parametrize(
    ("page", "last", "first"), [("text", "er", "finetune"), ("frozen-backbones", "ranpac", "finetune")]
)
def test_the_streams_of_the_pages(page: str, last: str, first: str, tmp_path: Path) -> None:
    write(blocks(f"docs/{page}.md", "python")[0], tmp_path)
    said = run(["bash", "-e", "-c", blocks(f"docs/{page}.md", "bash")[0]], tmp_path)
    (shown, *_) = blocks(f"docs/{page}.md", "text")
    found, printed = figures(said), figures(shown)
    assert found.keys() == printed.keys()
    for name, value in printed.items():  # another processor rounds otherwise
        assert abs(found[name] - value) < 8, f"docs/{page}.md shows {value} for {name}, and it is {found[name]}"
    assert found[last] > found[first] + 20
    assert said.splitlines()[0] == shown.splitlines()[0]


def test_text_that_arrives(tmp_path: Path) -> None:
    run([sys.executable, "-c", blocks("docs/text.md", "python")[1]], tmp_path)


def test_the_commands_of_frozen_backbones(tmp_path: Path) -> None:
    said = run(["bash", "-e", "-c", blocks("docs/frozen-backbones.md", "bash")[1]], tmp_path)
    assert all(name in said for name in ("ncm", "slda", "ranpac", "er", "shrinkage"))


def test_an_encoder_on_the_command_line(tmp_path: Path) -> None:
    write(blocks("docs/frozen-backbones.md", "python")[2], tmp_path)
    command = blocks("docs/frozen-backbones.md", "bash")[2].strip()
    found = json.loads(run(["bash", "-c", f"BCL_DATA={tmp_path} {command} --workers 1 --json 2>/dev/null"], tmp_path))
    assert all(group["acc"]["mean"] > 80 for group in found["summary"])
    assert len(list((tmp_path / "features").glob("*.npy"))) == 2  # of the two splits, for four runs
    assert {r["config"]["encoder"] for r in found["runs"]} == {"backbones:small"}
    command = blocks("docs/frozen-backbones.md", "bash")[3].strip()
    tuned = json.loads(run(["bash", "-c", f"BCL_DATA={tmp_path} {command} --workers 1 --json 2>/dev/null"], tmp_path))
    assert len(tuned["trials"]["er"]) == 2
    assert len(list((tmp_path / "features").glob("*.npy"))) == 2, "the same samples"
    chosen = yaml.safe_load((tmp_path / "runs" / "hyper.yaml").read_text(encoding="utf-8"))
    assert chosen == {"split-digits --encoder backbones:small": {"class": {"er": tuned["trials"]["er"][0]["values"]}}}


def test_networks_of_other_packages_are_named_as_they_are() -> None:
    """The block is not run, for it fetches weights; but its names must exist where the packages are there."""
    assert pytest.importorskip("timm").create_model
    assert pytest.importorskip("transformers").AutoModel


def test_the_service_is_started_as_the_page_says() -> None:
    start = blocks("docs/service.md", "bash")[0].strip().splitlines()[-1]
    assert start in (ROOT / "examples" / "service.py").read_text(encoding="utf-8")
