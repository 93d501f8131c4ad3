"""`python -m bcl`."""

import sys

from bcl.cli import main

if __name__ == "__main__":
    sys.exit(main())
