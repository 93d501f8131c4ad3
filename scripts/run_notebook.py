"""Run the code cells of a notebook, in order, in one namespace.

    python scripts/run_notebook.py examples/first-steps.ipynb            # an error stops it
    python scripts/run_notebook.py examples/first-steps.ipynb --write    # and keep what the cells print and draw

Jupyter is not needed.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def run(path: Path) -> dict[str, Any]:
    """The notebook with the outputs of its cells: what they print, and the figures that they leave open."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
            cell["outputs"] = [*_text(said.getvalue()), *_figures()]
    return notebook


def _text(said: str) -> list[dict[str, Any]]:
    return [{"output_type": "stream", "name": "stdout", "text": said.splitlines(keepends=True)}] if said else []


def _figures() -> list[dict[str, Any]]:
    made = []
    for number in plt.get_fignums():
        picture = io.BytesIO()
        plt.figure(number).savefig(picture, format="png", dpi=80, bbox_inches="tight", metadata={"Software": None})
        data = {"image/png": base64.b64encode(picture.getvalue()).decode()}
        made.append({"output_type": "display_data", "data": data, "metadata": {}})
    plt.close("all")
    return made


def main() -> None:
    path = Path(sys.argv[1])
    notebook = run(path)
    if "--write" in sys.argv[2:]:
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
