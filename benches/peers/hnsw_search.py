"""hnswlib over plain 32-bit vectors: `hnsw_search.py FOLDER WIDTH THREADS COUNT`, on the first COUNT vectors; prints one line of JSON.

Inner product on unit vectors, M = 16 and ef_construction = 96, as ours is built. Recall@10 is against an exact product.
"""

import json
import sys
import time

import hnswlib
import numpy

EFFORTS = [10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256]
ROUNDS = 30


def resident():
    kinds = {"VmRSS:": "all", "RssAnon:": "own", "RssFile:": "mapped"}
    with open("/proc/self/status") as file:
        words = (line.split() for line in file)
        return {kinds[word[0]]: 1024 * int(word[1]) for word in words if word and word[0] in kinds}


def exact(moments, queries, count):
    best = numpy.empty((len(queries), count), dtype=numpy.float32)
    for first in range(0, len(queries), 50):
        scores = queries[first : first + 50] @ moments.T
        top = numpy.partition(scores, -count, axis=1)[:, -count:]
        best[first : first + 50] = numpy.sort(top, axis=1)[:, ::-1]
    return best


def main():
    folder, (width, threads, count) = sys.argv[1], map(int, sys.argv[2:5])
    moments = numpy.fromfile(f"{folder}/moments.f32", dtype=numpy.float32, count=count * width).reshape(-1, width)
    queries = numpy.fromfile(f"{folder}/queries.f32", dtype=numpy.float32).reshape(-1, width)
    least = exact(moments, queries, 10)[:, -1]
    before = resident()["own"]
    index = hnswlib.Index(space="ip", dim=width)
    begin = time.perf_counter()
    index.init_index(max_elements=len(moments), M=16, ef_construction=96, random_seed=1)
    index.add_items(moments, num_threads=threads)
    build = time.perf_counter() - begin
    memory = resident()["own"] - before
    points = []
    for effort in EFFORTS:
        index.set_ef(effort)
        _, distances = index.knn_query(queries, k=10, num_threads=threads)
        # Both sides add up products in another order; a tie to the sixth decimal is a tie.
        recall = float(((1.0 - distances) >= least[:, None] - 1e-6).mean())
        begin = time.perf_counter()
        for _ in range(ROUNDS):
            index.knn_query(queries, k=10, num_threads=threads)
        seconds = time.perf_counter() - begin
        points.append({"expansion": effort, "recall": recall, "qps": ROUNDS * len(queries) / seconds})
    told = {"moments": len(moments), "width": width, "build_s": build, "bytes": memory, "points": points}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
