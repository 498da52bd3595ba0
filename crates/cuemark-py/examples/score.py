"""Scores a prediction file: score.py TRUTH PREDICTIONS [PRESET]"""

import sys

import cuemark


def main(truth: str, predictions: str, preset: "str | None" = None) -> None:
    found = cuemark.evaluate(truth, predictions, preset=preset)
    print(found.to_markdown(interval=95))
    for line in found.conventions:
        print(line)
    hardest = sorted(zip(found.per_query[next(iter(found.metrics))], found.qids))[:3]
    print("hardest queries:", ", ".join(qid for _, qid in hardest))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:4])
    except cuemark.CuemarkError as error:
        sys.exit(f"error: {error}")
