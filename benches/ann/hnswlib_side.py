"""hnswlib as a side of the comparison: `build|rewrite|answer VECTORS WIDTH COUNT FOLDER`, as `src/commands.rs` describes them."""

import json
import os
import sys
import time

import hnswlib
import numpy


def say(**told):
    print(json.dumps(told), flush=True)


def memory(field):
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(field + ":"))


def built(vectors, width, count):
    moments = numpy.fromfile(f"{vectors}/moments.f32", dtype=numpy.float32, count=count * width).reshape(-1, width)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the highest mark so far is forgotten
    before, began, processor = memory("VmRSS"), time.perf_counter(), time.process_time()
    index = hnswlib.Index(space="ip", dim=width)
    index.init_index(max_elements=len(moments), M=16, ef_construction=96, random_seed=1)
    index.add_items(moments, num_threads=2)
    return index, before, began, processor


def main():
    what, vectors, width, count, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
    path = f"{folder}/moments.hnswlib"
    if what == "answer":
        queries = numpy.fromfile(f"{vectors}/queries.f32", dtype=numpy.float32).reshape(-1, width)
        own, mapped, began = memory("RssAnon"), memory("RssFile"), time.perf_counter()
        index = hnswlib.Index(space="ip", dim=width)
        index.load_index(path)
        say(opened=time.perf_counter() - began)
        for line in sys.stdin:
            effort, how = line.split()
            index.set_ef(int(effort))
            if how == "found":
                labels, _ = index.knn_query(queries, k=10, num_threads=1)
                say(found=labels.tolist(), own=memory("RssAnon") - own, mapped=memory("RssFile") - mapped)
            else:
                began, processor = time.perf_counter(), time.process_time()
                index.knn_query(queries, k=10, num_threads=int(how))
                say(seconds=time.perf_counter() - began, processor=time.process_time() - processor)
        return
    os.makedirs(folder, exist_ok=True)
    index, before, began, processor = built(vectors, width, count)
    index.save_index(path)
    if what == "build":
        seconds, processor = time.perf_counter() - began, time.process_time() - processor
        disk = 512 * os.stat(path).st_blocks
        say(seconds=seconds, processor=processor, peak=memory("VmHWM") - before, disk=disk)
        return
    while True:
        say(ready=True)
        began = time.perf_counter()
        index.save_index(path)
        say(seconds=time.perf_counter() - began)


if __name__ == "__main__":
    main()
