"""The program `bcl`, and `python -m bcl`."""

import sys


def main() -> int:
    try:
        from bcl.cli import main
    except KeyboardInterrupt:
        print("bcl: stopped", file=sys.stderr)
        return 130
    return main()


if __name__ == "__main__":
    sys.exit(main())
