"""What the server that starts worker processes imports, once for all of them; see `bcl.processes.quick_start`.

Nothing here may touch a GPU: a process that was forked after that could not use it.
"""

import signal

import bcl.schedule.workers
from bcl.processes import STOP_SIGNALS

__all__ = ["bcl"]
for number in STOP_SIGNALS:  # it ends when the command does; workers are told by the command when to stop
    signal.signal(number, signal.SIG_IGN)
