"""Long calls let other threads run, say how far they are, and stop on Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import cuemark


def many(queries: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return np.sort(rng.random((queries, 2)), axis=1), np.sort(rng.random((queries, 2)), axis=1)[:, None, :]


def test_other_threads_run_meanwhile() -> None:
    found = cuemark.evaluate(*many(4_000), metrics="mIoU")
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.001)

    other = threading.Thread(target=tick)
    other.start()
    before = ticks
    found.interval(resamples=20_000)
    during = ticks - before
    done.set()
    other.join()
    assert during > 3, "the lock was held"


def test_a_function_is_told_how_far_it_is() -> None:
    told: list[tuple[str, int, int]] = []
    found = cuemark.evaluate(*many(500), metrics="mIoU", progress=lambda *step: told.append(step))
    assert ("scoring", 500, 500) in told
    found.interval(resamples=300, progress=lambda *step: told.append(step))
    assert told[-1] == ("resampling", 300, 300)


def test_what_the_function_raises_stops_the_work() -> None:
    found = cuemark.evaluate(*many(20_000), metrics="mIoU")

    def enough(what: str, done: int, total: int) -> None:
        raise RuntimeError(f"enough of {what}")

    with pytest.raises(RuntimeError, match="enough of resampling"):
        found.interval(resamples=100_000_000, progress=enough)  # would take hours


# A hundred million resamples would take hours.
FOREVER = """
import sys
import numpy as np
import cuemark
rng = np.random.default_rng(0)
spans = np.sort(rng.random((20_000, 2)), axis=1)
found = cuemark.evaluate(spans, spans[::-1, None, :].copy(), metrics="mIoU")
print("ready", flush=True)
try:
    found.interval(resamples=100_000_000)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_stops_it() -> None:
    child = subprocess.Popen([sys.executable, "-c", FOREVER], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "stopped\n"
        assert child.wait(timeout=60) == 0
    finally:
        child.kill()


def test_bars_are_drawn_and_taken_away(capsys: pytest.CaptureFixture[str]) -> None:
    from cuemark._progress import Bar

    bar = Bar("reading")
    bar.show(1, 2)
    bar.close()
    drawn = capsys.readouterr().err
    assert "reading" in drawn and "50%" in drawn


def test_files_are_watched_while_they_are_read(tmp_path: Path) -> None:
    truth, answers = tmp_path / "truth.jsonl", tmp_path / "answers.jsonl"
    with open(truth, "w") as t, open(answers, "w") as a:
        for qid in range(2_000):
            t.write(f'{{"qid": {qid}, "query": "q", "video": "v{qid}", "spans": [[0.0, 5.0]]}}\n')
            a.write(f'{{"qid": {qid}, "predictions": [{{"span": [0.0, 5.0], "score": 0.5}}]}}\n')
    told: list[tuple[str, int, int]] = []
    found = cuemark.evaluate(truth, answers, metrics="mIoU", progress=lambda *step: told.append(step))
    assert found.metrics["mIoU"] == 1.0
    size = truth.stat().st_size + answers.stat().st_size
    assert ("reading", size, size) in told
