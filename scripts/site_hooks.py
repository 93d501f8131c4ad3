"""What the documentation site has beside docs/: pages of other files, the reference, the notebook, the reports; and
formulas as MathML, which a browser shows without a script. MkDocs calls the functions named on_* (see mkdocs.yml)."""

from __future__ import annotations

import base64
import html
import importlib
import json
import posixpath
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
import yaml
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.testing import CliRunner

import bcl
from bcl.cli import catalogue
from bcl.learners import METHODS

sys.path.insert(0, str(Path(__file__).parent))
from site_docstrings import no_references

ROOT = Path(__file__).parents[1]
# Pages of the site that are files elsewhere in the repository.
PAGES = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changes.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
    "results.md": "results/README.md",
}
NOTEBOOK = ROOT / "examples" / "first-steps.ipynb"
LINK = re.compile(r"(?<=\]\()([^)#\s]+)(?=[)#])")
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)

_store = tempfile.TemporaryDirectory(prefix="bcl-site-")  # of the reports, until they are copied


def on_config(config: MkDocsConfig) -> None:
    config.nav = [{title: _existing(part)} for section in config.nav for title, part in section.items()]


def _existing(part: Any) -> Any:
    """A part of the navigation without the pages that are not written yet; a test knows which may be missing."""
    if isinstance(part, str):
        return part
    made = {*PAGES, "first-steps.md", "reports.md", *_reference()}
    return [e for e in part if {*e.values()} <= made or all((ROOT / "docs" / path).exists() for path in e.values())]


def on_files(files: Files, config: MkDocsConfig) -> None:
    pages: dict[str, str | bytes] = {uri: (ROOT / path).read_bytes() for uri, path in PAGES.items()}
    pages |= {uri: make() for uri, make in _reference().items()}
    pages |= notebook_page(json.loads(NOTEBOOK.read_text(encoding="utf-8")))
    pages["reports.md"] = _report_list()
    for uri, content in pages.items():
        files.append(File.generated(config, uri, content=content))
    for path in _reports(bool(config.extra["reports"])):
        uri = f"reports/{path.relative_to(_store.name).as_posix()}"
        files.append(File.generated(config, uri, abs_src_path=str(path)))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to files of the repository lead to their pages, or to copies as plain text."""
    uri = page.file.src_uri
    here = PAGES.get(uri, f"docs/{uri}")

    def target(found: re.Match[str]) -> str:
        there = posixpath.normpath(posixpath.join(posixpath.dirname(here), found[0]))
        if "://" in found[0] or there.startswith("..") or not (ROOT / there).is_file():
            return found[0]
        to = _uri_of(there)
        if files.get_file_from_path(to) is None:
            files.append(File.generated(config, to, abs_src_path=str(ROOT / there)))
        return posixpath.relpath(to, posixpath.dirname(uri))

    return no_references(LINK.sub(target, markdown))


def _uri_of(path: str) -> str:
    homes = {there: uri for uri, there in PAGES.items()}
    if path in homes:
        return homes[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"files/{path}" if path.endswith((".txt", ".ipynb")) else f"files/{path}.txt"


def on_page_content(html: str, **_: Any) -> str:
    return FORMULA.sub(lambda found: mathml(found[2], block=found[1] == "div"), html)


def mathml(formula: str, block: bool) -> str:
    """TeX to MathML. A formula that the converter does not know in full is an error: it would show as TeX, or worse."""
    tex = html.unescape(formula).strip().replace("{aligned}", "{align*}")
    made = convert(tex, display="block" if block else "inline")
    if re.search(r"\\[a-zA-Z]|<mi>&</mi>", made):
        raise ValueError(f"not known to the converter of formulas: {tex}")
    return made


def on_post_build(config: MkDocsConfig) -> None:
    """The index of the search as a script, for pages that are opened from the disk."""
    index = Path(config.site_dir) / "search" / "search_index.json"
    index.with_suffix(".js").write_text(f"var __index = {index.read_text(encoding='utf-8')}", encoding="utf-8")
    _store.cleanup()


# ---- the reference -------------------------------------------------------------------------------------------------


def _reference() -> dict[str, Any]:
    return {
        "reference/bcl.md": _package_page,
        "reference/commands.md": _commands_page,
        "reference/learners.md": _learners_page,
    }


def _documented() -> Iterator[Any]:
    """What the pages of docs/reference show: objects, and the public names of modules."""
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")):
        for path in re.findall(r"^::: ([\w.]+)", page.read_text(encoding="utf-8"), re.MULTILINE):
            yield from _objects(path)


def _objects(path: str) -> list[Any]:
    """A module's own names, or the one object that a path leads to."""
    home, _, name = path.rpartition(".")
    try:
        module = importlib.import_module(path)
    except ModuleNotFoundError:
        return [getattr(importlib.import_module(home), name)]
    own = (n for n, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__)
    return [getattr(module, n) for n in getattr(module, "__all__", own)]


def _package_page() -> str:
    """What `import bcl` offers, each name with a link to its documentation, which is here if it is nowhere else."""
    rows, further, shown = [], [], list(_documented())
    for name in bcl._HOMES:
        try:
            found = getattr(bcl, name)
        except ImportError as error:  # of an extra
            rows.append(f"| `bcl.{name}` | with `{error.name}` installed |")
            continue
        path, summary = f"{found.__module__}.{found.__qualname__}", (found.__doc__ or "").strip().splitlines()[0]
        is_method = path.replace(f".{name}", f":{name}") in METHODS.values()
        link = f"(learners.md#{path})" if is_method else f"[{path}]"
        further += [] if is_method or any(found is other for other in shown) else ["", f"::: {path}"]
        rows.append(f"| [`bcl.{name}`]{link} | {_cell(summary)} |")
    return "\n".join(
        [
            "# The package",
            "",
            "What `import bcl` offers. Names are loaded when they are first used. The other modules can be imported as",
            "well: what an author needs is on the pages of this section; the rest may change.",
            "",
            "| name | what it is |",
            "|---|---|",
            *rows,
            *further,
        ]
    )


def _commands_page() -> str:
    """The help of every command, as the command prints it."""
    from bcl.cli.main import app

    lines = ["# The command line", "", "What each command says when it is asked with `--help`.", ""]
    for words in _commands(typer.main.get_command(app), ()):
        said = CliRunner().invoke(app, [*words, "--help"], prog_name="bcl", env={"COLUMNS": "100"}).output
        lines += [f"## {' '.join(('bcl', *words))}", "", "```text", said.strip(), "```", ""]
    return "\n".join(lines)


def _commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield words
    for name, part in getattr(command, "commands", {}).items():
        yield from _commands(part, (*words, name))


def _learners_page() -> str:
    """Every method of the package: its docstring and its hyper-parameters."""
    lines = [
        "# Methods and hyper-parameters",
        "",
        "One class per method, with its pseudo-code, its deviations and its hyper-parameters: `--set name=value` on",
        "the command line, keywords in Python. [Methods](../methods.md) compares what they store and what they cost.",
    ]
    for name, place in METHODS.items():
        about = catalogue.describe_method(name)
        path = place.replace(":", ".")
        lines += ["", f"## {name} {{ #{path} }}", "", f"`bcl.{path.rpartition('.')[2]}` · {about['reference']}", ""]
        lines += [f"::: {path}", "    options:"]
        lines += ["      members: false", "      show_root_heading: false", "      show_root_toc_entry: false", ""]
        if about["hyper"]:
            lines += ["| hyper-parameter | default | symbol | meaning |", "|---|---|---|---|"]
        for key, value in about["hyper"].items():
            row = [f"`{key}`", f"`{value['default']}`", value.get("symbol", ""), value.get("meaning", "")]
            lines.append(f"| {' | '.join(map(_cell, row))} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


# ---- the notebook and the reports ----------------------------------------------------------------------------------


def notebook_page(notebook: dict[str, Any]) -> dict[str, str | bytes]:
    """The cells of a notebook and what they printed, as a page, and its figures."""
    lines: list[str] = []
    files: dict[str, str | bytes] = {}
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        lines += [text, ""] if cell["cell_type"] == "markdown" else ["```python", text, "```", ""]
        for output in cell.get("outputs", []):
            if picture := output.get("data", {}).get("image/png"):
                name = f"first-steps-{len(files) + 1}.png"
                files[name] = base64.b64decode(picture)
                lines += [f"![What the cell draws]({name})", ""]
            else:
                lines += ["```text", "".join(output["text"]).rstrip(), "```", ""]
    lines += [f"The notebook itself: [`{NOTEBOOK.name}`](../examples/{NOTEBOOK.name})."]
    return {"first-steps.md": "\n".join(lines), **files}


def _suites() -> list[Path]:
    return [path.parent for path in sorted((ROOT / "results" / "paper").glob("*/suite.yaml"))]


def _report_list() -> str:
    lines = [
        "# Report pages",
        "",
        "Made from the [published runs](results.md) when this site was built, by the command",
    ]
    lines += ["that you have: one page each with tables, curves, accuracy matrices and every seed.", ""]
    for suite in _suites():
        title = yaml.safe_load((suite / "suite.yaml").read_text(encoding="utf-8"))["title"]
        lines.append(f"- [{title}](reports/{suite.name}/report.html) · `bcl report results/paper/{suite.name}`")
    return "\n".join(lines)


def _reports(wanted: bool) -> Iterator[Path]:
    """The pages and tables of all published suites; if they are not wanted, empty pages, so that links hold."""
    for suite in _suites():
        out = Path(_store.name) / suite.name
        out.mkdir(parents=True)
        page = out / "report.html"
        if wanted:
            words = ["report", str(suite.relative_to(ROOT)), "-o", str(page), "--tables", str(out / "tables")]
            done = subprocess.run([sys.executable, "-m", "bcl", *words], cwd=ROOT, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"bcl {' '.join(words)}: {done.stderr}")
        else:
            page.touch()
        yield from (path for path in sorted(out.rglob("*")) if path.is_file())
