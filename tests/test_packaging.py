"""What is shipped: the version, the files that are not Python, the script that builds a wheel of a tag."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import bcl

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
IDENTITY = {f"GIT_{who}_{what}": f"test@{who}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def test_the_version_is_written_once() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "bcl.__version__"}
    assert "version" not in yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_every_file_of_the_package_is_shipped() -> None:
    files = {p for p in (ROOT / "bcl").rglob("*") if p.is_file() and p.suffix not in (".py", ".pyc")}
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["bcl"]
    assert files == {path for pattern in patterns for path in (ROOT / "bcl").glob(pattern)}


def test_what_the_package_imports_is_a_dependency_or_an_extra() -> None:
    """By the names of the packages, where those of the modules differ."""
    names = {"yaml": "pyyaml", "PIL": "pillow", "sklearn": "scikit-learn"}
    names |= {"requests": "pooch", "markupsafe": "jinja2"}  # which bring them
    extras = [word for words in PROJECT["project"]["optional-dependencies"].values() for word in words]
    known = {word.split(">")[0].lower() for word in (*PROJECT["project"]["dependencies"], *extras)}
    found = set()
    for path in (ROOT / "bcl").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.split(".")[0])
    found = {names.get(name, name) for name in found - set(sys.stdlib_module_names) - {"bcl"}}
    assert found <= known


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_a_tag_that_does_not_name_the_version_builds_nothing(tmp_path: Path) -> None:
    for name in ("scripts", "bcl"):
        (tmp_path / name).mkdir()
    shutil.copy(ROOT / "scripts" / "build_wheel.sh", tmp_path / "scripts")
    shutil.copy(ROOT / "bcl" / "__init__.py", tmp_path / "bcl")
    env = {**os.environ, **IDENTITY}
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"], ["tag", "v9.9.9"]):
        subprocess.run(["git", *words], cwd=tmp_path, env=env, check=True)
    for arguments in ([], ["v9.9.9"]):
        words = ["bash", "scripts/build_wheel.sh", *arguments]
        done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert f"bcl/__init__.py has {bcl.__version__}, whose tag is v{bcl.__version__}" in done.stderr
        assert not (tmp_path / "dist").exists()
