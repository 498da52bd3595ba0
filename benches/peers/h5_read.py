"""The other side of `cargo xtask bench features`: every video of an HDF5 file by h5py, as people's training code reads it.

usage: h5_read.py make CASE FILE.h5
       h5_read.py read FILE.h5 TIMES

The first form writes features of a usual size in one of the layouts that h5py's users choose from. The second prints one line of
JSON as our side (`crates/cuemark-features/examples/h5_read.rs`) does: seconds of each time from opening the file to the last row in
memory as 32-bit numbers, after a first that does not count.
"""

import json
import sys
import time

import h5py
import numpy as np

# Videos, rows of each, numbers of a row: I3D features of a small dataset.
VIDEOS, ROWS, WIDTH = 200, 100, 1024
PACKED = {"compression": "gzip", "shuffle": True}
# Numbers, how they lie, version of the format.
CASES = {
    "f32-contiguous": ("f4", {}, None),
    "f16-contiguous": ("f2", {}, None),
    "f64-contiguous": ("f8", {}, None),
    "f32-gzip-shuffle": ("f4", PACKED, None),
    "f16-gzip-shuffle": ("f2", PACKED, None),
    "f32-lzf": ("f4", {"compression": "lzf"}, None),
    "f32-contiguous-latest": ("f4", {}, "latest"),
    "f32-gzip-shuffle-latest": ("f4", PACKED, "latest"),
}


def make(case, path):
    kind, layout, version = CASES[case]
    rng = np.random.default_rng(0)
    with h5py.File(path, "w", libver=version) as file:
        for number in range(VIDEOS):
            # After a rectifier, as most published features are: half of them zero.
            rows = np.maximum(rng.standard_normal((ROWS, WIDTH)), 0).astype(kind)
            file.create_dataset(f"video{number:04}", data=rows, **layout)


def read_all(path):
    with h5py.File(path, "r") as file:
        return [np.asarray(file[name][()], dtype=np.float32) for name in sorted(file)]


def read(path, times):
    seconds = []
    for number in range(times + 1):
        began = time.perf_counter()
        rows = read_all(path)
        # As ours: numbers that are none must not reach a network.
        assert all(np.isfinite(video).all() for video in rows)
        if number:
            seconds.append(time.perf_counter() - began)
    line = {
        "read_s": seconds, "videos": len(rows), "numbers": sum(video.size for video in rows),
        "sum": float(sum(video.astype(np.float64).sum() for video in rows)), "h5py": h5py.__version__,
    }
    print(json.dumps(line))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(*sys.argv[2:])
    else:
        read(sys.argv[2], int(sys.argv[3]))
