"""One thread and no chance: results depend neither on the machine's load nor on the day."""

import signal

import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("bcl", deadline=None, derandomize=True, database=None)
settings.load_profile("bcl")

# A test run in the background may have been started with interrupts ignored, and would hand that on to its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
