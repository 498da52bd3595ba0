"""What every peer does around its evaluation: read, time, print."""

import json
import sys
import time


def report(read, evaluate):
    """Times `read()`, then `evaluate(*what it gave)`, and prints the metrics and the timings."""
    begin = time.perf_counter()
    inputs = read()
    between = time.perf_counter()
    metrics = evaluate(*inputs)
    end = time.perf_counter()
    json.dump({"metrics": metrics}, sys.stdout)
    sys.stdout.write("\n")
    timings = {"read_s": between - begin, "evaluate_s": end - between}
    sys.stderr.write("timings " + json.dumps(timings) + "\n")


def read_json(path):
    with open(path) as file:
        return json.load(file)


def read_jsonl(path):
    with open(path) as file:
        return [json.loads(line) for line in file if line.strip()]
