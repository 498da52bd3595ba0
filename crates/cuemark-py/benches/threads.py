"""Two threads that make a call each, against one thread that makes one: threads.py REPEAT TRUTH PREDICTIONS

An evaluation uses every core by itself, so two of them share the cores. A call that uses one core shows the lock alone:
with it released, two calls on two cores take as long as one.
"""

import json
import sys
import threading
import time

import numpy as np

import cuemark


def timed(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def together(calls):
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main(repeat, truth, predictions):
    one = lambda: cuemark.evaluate(truth, predictions, metrics="R@1,IoU=0.5", progress=False)
    rng = np.random.default_rng(0)
    spans = np.sort(rng.random((6_000, 2)) * 1e4, axis=1)
    single = lambda: cuemark.nms(spans, threshold=1.0)
    one(), single()
    runs = []
    for _ in range(int(repeat)):
        runs.append({
            "file": timed(one),
            "two_files": timed(lambda: together([one, one])),
            "single": timed(single),
            "two_singles": timed(lambda: together([single, single])),
        })
    print(json.dumps({name: [run[name] for run in runs] for name in runs[0]}))


main(*sys.argv[1:])
