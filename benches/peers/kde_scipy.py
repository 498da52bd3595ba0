"""The other side of `cargo xtask bench protocols`: SciPy's exact Gaussian KDE of n points at themselves.

usage: kde_scipy.py POINTS.f64 N...

POINTS.f64 holds little-endian doubles, start and end of one point after the other. For each N the first N points are
fitted and evaluated at themselves; prints one JSON line {"n", "seconds", "checksum"} per N (best of two runs when a run is short).
"""

import json
import sys
import time

import numpy as np
from scipy.stats import gaussian_kde


def main() -> None:
    points = np.fromfile(sys.argv[1], dtype="<f8").reshape(-1, 2).T
    for n in map(int, sys.argv[2:]):
        sample = np.ascontiguousarray(points[:, :n])
        seconds = float("inf")
        for _ in range(2):
            began = time.perf_counter()
            density = gaussian_kde(sample)(sample)
            seconds = min(seconds, time.perf_counter() - began)
            if seconds > 10:
                break
        print(json.dumps({"n": sample.shape[1], "seconds": seconds, "checksum": float(density.sum())}), flush=True)


if __name__ == "__main__":
    main()
