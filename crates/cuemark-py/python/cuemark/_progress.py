"""A bar on standard error: tqdm's where it is installed, a plain one otherwise."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from typing import Any, Optional

_WIDTH = 30


def is_watched() -> bool:
    """Whether somebody sees standard error as it is written."""
    try:
        return bool(sys.stderr.isatty())
    except (AttributeError, ValueError):  # no standard error, or a closed one
        return False


class Bar:
    """One piece of work, shown from its first ``show`` until ``close``."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._begin = time.monotonic()
        self._tqdm: Optional[Any] = None
        try:
            tqdm = import_module("tqdm.auto").tqdm
        except ImportError:
            return
        self._tqdm = tqdm(total=0, desc=what, unit_scale=True, leave=False)

    def show(self, done: int, total: int) -> None:
        """Moves the bar to ``done`` of ``total`` steps; a total of 0 is one that nobody knows."""
        if self._tqdm is not None:
            self._tqdm.total = total or None
            self._tqdm.n = done
            self._tqdm.refresh()
            return
        seconds = time.monotonic() - self._begin
        share = done / total if total else 0.0
        bar = "#" * int(share * _WIDTH)
        shown = f"{share:4.0%}|{bar:<{_WIDTH}}|" if total else "working"
        sys.stderr.write(f"\r{self._what}: {shown} {seconds:.0f} s")
        sys.stderr.flush()

    def close(self) -> None:
        """Takes the bar away."""
        if self._tqdm is not None:
            self._tqdm.close()
        else:
            sys.stderr.write("\r" + " " * (len(self._what) + _WIDTH + 24) + "\r")
            sys.stderr.flush()
