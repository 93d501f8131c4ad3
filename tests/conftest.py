"""One thread and no chance: results depend neither on the machine's load nor on the day."""

import signal

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
