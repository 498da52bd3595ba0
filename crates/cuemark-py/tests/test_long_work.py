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


# A shell starts background jobs deaf to Ctrl-C, and they hand that down; somebody at a terminal is not.
BEGIN = """
import signal
import numpy as np
import cuemark
signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
{setting}
print("ready", flush=True)
try:
    {call}
except KeyboardInterrupt:
    print("stopped", flush=True)
"""

# Each would take minutes or hours: a hundred million resamples; every span against every other; a kernel per pair.
LONG = {
    "intervals": (
        "spans = np.sort(rng.random((20_000, 2)), axis=1)\n"
        "found = cuemark.evaluate(spans, spans[::-1, None, :].copy(), metrics='mIoU')",
        "found.interval(resamples=100_000_000)",
    ),
    "nms": (
        "spans = np.arange(1_000_000.0)[:, None] + np.array([0.0, 0.5])",
        "cuemark.nms(spans, np.arange(1_000_000.0), threshold=0.5)",
    ),
    "cd": (
        "n = 400_000\nstart = rng.random(n) * 50\n"
        "data = {'qid': np.arange(n), 'video': [f'v{k // 2}' for k in range(n)], 'duration': np.full(n, 100.0),"
        " 'start': start, 'end': start + 50 * rng.random(n)}",
        "cuemark.split.cd(data)",
    ),
}


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.parametrize("work", LONG)
def test_ctrl_c_stops_it(work: str) -> None:
    setting, call = LONG[work]
    script = BEGIN.format(setting=setting, call=call)
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
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


def test_datasets_and_audits_tell_how_far_they_are(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with open(tmp_path / "mine/train.jsonl", "w") as file:
        for qid in range(400):
            start = qid % 37 / 4
            file.write(f'{{"qid": {qid}, "query": "she runs", "video": "v{qid}", "duration": 20.0, "spans": [[{start}, {start + 3}]]}}\n')
    told: list[tuple[str, int, int]] = []
    dataset = cuemark.load("cuemark-jsonl", tmp_path / "mine", progress=lambda *step: told.append(step))
    size = (tmp_path / "mine/train.jsonl").stat().st_size
    assert told[-1] == ("reading", size, size)
    told.clear()
    # Starts repeat after 37 queries, and equal places are looked at once.
    made = cuemark.split.cd(dataset, progress=lambda *step: told.append(step))
    assert told[-1] == ("splitting", 37, 37)
    made.write(tmp_path / "made")
    told.clear()
    cuemark.split.audit(tmp_path / "made", progress=lambda *step: told.append(step))
    ends = {what: (done, total) for what, done, total in told}
    # A phase that is over before anybody looks is not told; the last one always is, to its end.
    assert list(ends)[-1] == "auditing" and set(ends) <= {"reading", "auditing"}
    done, total = ends["auditing"]
    assert done == total > 0
