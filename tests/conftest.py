"""One thread and no chance: results depend neither on the machine's load nor on the day."""

import signal
import tempfile
from pathlib import Path

import lines
import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("bcl", deadline=None, derandomize=True, database=None)
settings.load_profile("bcl")

# A test run in the background may have been started with interrupts ignored, and would hand that on to its children.
signal.signal(signal.SIGINT, signal.default_int_handler)

SLOW = ("test_ray_", "test_docs", "test_faults", "test_resume", "test_suite_stopped", "test_data_cli", "test_site")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first, most of which wait for processes of their own: at the end all but one worker would be idle."""
    items.sort(key=lambda item: not any(name in item.nodeid for name in SLOW))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--coverage", action="store_true", help="list what of bcl/ no test reaches, all of it in .coverage.txt"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--coverage") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Coverage(config.rootpath))


class Coverage:
    """Begins before the package is imported and before pytest-xdist starts its workers, which inherit it."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, tempfile.TemporaryDirectory(prefix="bcl-lines-")
        self.files = lines.prepare(root / "bcl", Path(self.folder.name))
        lines.begin(Path(self.folder.name))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        total, missing = lines.report(self.files, Path(self.folder.name), self.root)
        (self.root / ".coverage.txt").write_text("\n".join([total, *missing, ""]), encoding="utf-8")
        terminalreporter.section("what of bcl/ no test reaches")
        for line in missing[:20]:
            terminalreporter.write_line(line[:150])
        terminalreporter.write_line(f"{total}. All that is missing: .coverage.txt. Not counted: what Triton compiles.")
