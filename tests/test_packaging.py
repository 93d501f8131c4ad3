"""What is shipped: the version, the files that are not Python, the script that builds a wheel of a tag."""

from __future__ import annotations

import ast
import os
import re
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


PACKAGES = {"yaml": "pyyaml", "PIL": "pillow", "sklearn": "scikit-learn"}  # where a package is not called as its module


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=]", word)[0].lower() for word in requirements}


def imported(tree: ast.AST, everywhere: bool) -> set[str]:
    """The packages that a file imports, in its functions too or only when it is loaded."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
        elif everywhere or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found |= imported(node, everywhere)
    return {PACKAGES.get(name, name) for name in found - set(sys.stdlib_module_names) - {"bcl"}}


def test_what_the_package_imports_is_a_dependency_and_in_functions_perhaps_of_an_extra() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    needed = names(PROJECT["project"]["dependencies"])
    known = needed | names([word for extra, words in extras.items() if extra not in ("dev", "docs") for word in words])
    for path in (ROOT / "bcl").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert imported(tree, everywhere=True) <= known, path
        if path.parent.name != "triton" and path.name != "river_base.py":  # loaded where there is Triton, or river
            assert imported(tree, everywhere=False) <= needed, path


def test_constraints_pin_every_dependency() -> None:
    project = PROJECT["project"]
    words = [*project["dependencies"], *(word for group in project["optional-dependencies"].values() for word in group)]
    lines = [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if line[0] != "#"]
    assert all("==" in line for line in lines)
    assert names(words) - {"bcl"} <= names(lines)


def test_the_container_has_the_versions_of_the_tests() -> None:
    steps = (ROOT / "Containerfile").read_text(encoding="utf-8")
    assert re.search(r"torch==[\d.]+", steps)[0] in (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert "-c /opt/bcl/constraints.txt '/opt/bcl[" in steps
    (image,) = re.findall(r"^FROM .*python:(3\.\d+)-slim$", steps, re.MULTILINE)
    assert f"Programming Language :: Python :: {image}" in PROJECT["project"]["classifiers"]


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
