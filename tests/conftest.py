"""One thread: results do not depend on the machine, and tests can run side by side."""

import torch

torch.set_num_threads(1)
