"""The count of lines that tests reach: in this process and in those that it starts, killed ones included."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import lines

MODULE = '''"""Not counted."""
from __future__ import annotations
import os, signal


def halved(n):
    """Not counted either."""
    if n % 2:
        raise ValueError
    else:
        return n // 2


class Never:
    word = 1

    def told(self):
        try:
            pass
        finally:
            x = 1
        return x


def die():
    os.kill(os.getpid(), signal.SIGKILL)
    print("still here")
'''


def test_what_is_reached_in_processes_that_end_and_in_one_that_is_killed(tmp_path: Path) -> None:
    package, where = tmp_path / "small", tmp_path / "prepared"
    package.mkdir()
    where.mkdir()
    (package / "__init__.py").write_text("")
    (package / "halves.py").write_text(MODULE)
    files = lines.prepare(package, where)
    path = os.pathsep.join([str(lines.AT_START), str(tmp_path)])
    environment = {**os.environ, "BCL_COUNTED_LINES": str(where), "PYTHONPATH": path}

    def child(code: str) -> int:
        return subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode

    assert lines.report(files, where, tmp_path)[1] == ["small/halves.py: 14 of 14 statements: 3-27"]
    assert child("from small.halves import halved; assert halved(4) == 2") == 0
    assert lines.report(files, where, tmp_path)[1] == ["small/halves.py: 6 of 14 statements: 9, 18-22, 26-27"]
    assert child("from small.halves import die; die()") == -9
    total, missing = lines.report(files, where, tmp_path)
    assert missing == ["small/halves.py: 5 of 14 statements: 9, 18-22, 27"]
    assert total == "64.3 % of 14 statements are reached"


def test_a_line_stays_where_it_is_and_kernels_are_left_alone(tmp_path: Path) -> None:
    code = "import triton\n\n\n@triton.jit\ndef kernel():\n    a = 1\n\n\nif TYPE_CHECKING:\n    import b\n\n\n1 / 0\n"
    (tmp_path / "one.py").write_text(code)
    (file,) = lines.prepare(tmp_path, tmp_path)
    assert file.lines == [1, 5, 9, 13]
