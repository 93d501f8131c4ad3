"""What the server that starts worker processes imports, once for all of them; see `bcl.processes.quick_start`.

Nothing here may touch a GPU: a process that was forked after that could not use it.
"""

import contextlib
import importlib
import signal

from bcl.processes import STOP_SIGNALS

# Beside the workers' own code what torch's first gradient and the first kernel would import: seconds, for each of them.
for name in ("bcl.schedule.workers", "torch.fx.experimental.symbolic_shapes", "triton"):
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
for number in STOP_SIGNALS:  # it ends when the command does; workers are told by the command when to stop
    signal.signal(number, signal.SIG_IGN)
