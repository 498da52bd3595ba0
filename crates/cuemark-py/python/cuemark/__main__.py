"""``python -m cuemark``, and what the command ``cuemark`` of the wheel runs: the same program as the binary."""

import signal
import sys

from cuemark._native import run_command


def main() -> None:
    """Does what was typed, and ends with the program's exit code."""
    # The program ends itself in order when it is interrupted; Python's own handler would wait until it has ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(run_command(sys.argv[1:], [sys.executable, "-m", "cuemark"]))


if __name__ == "__main__":
    main()
