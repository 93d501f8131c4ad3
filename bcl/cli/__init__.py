"""The command line: parse, call, print."""

from bcl.cli.main import main

__all__ = ["main"]
