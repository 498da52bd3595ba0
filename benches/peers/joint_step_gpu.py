"""Networks of moments and highlights on one GPU: ours and PyTorch eager in turns, TF32 allowed on both.

usage: joint_step_gpu.py JOINT_STEP [STEPS] [ROUNDS]

JOINT_STEP is `crates/cuemark-models/examples/joint_step.rs` built with `--features cuda`. Run it with PyTorch's CUDA
libraries on LD_LIBRARY_PATH. Prints a line of JSON per run and a table at the end.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
BATCH = 32
WITH_PEER = ["moment-detr", "qd-detr"]
ALONE = ["eatr", "cg-detr", "uvcom", "tr-detr", "taskweave", "univtg"]


def run(side, command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        print("FAILED:", *command, "\n", done.stderr[-3000:], flush=True)
        return None
    line = json.loads(done.stdout.strip().splitlines()[-1])
    print(side, json.dumps(line), flush=True)
    return line


def median(lines, part):
    return statistics.median(second for line in lines for second in line[part + "_s"]) * 1e3


def main():
    ours, steps, rounds = sys.argv[1], *(int(word) for word in (sys.argv[2:] + ["30", "3"][len(sys.argv) - 2 :]))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for model in WITH_PEER + ALONE:
            start, mine, theirs = pathlib.Path(folder, model), [], []
            for _ in range(rounds if model in WITH_PEER else 1):
                mine.append(run("ours", [ours, model, BATCH, steps, "cuda:0", start]))
                if model in WITH_PEER:
                    peer = [sys.executable, HERE / "joint_step.py", model, steps, "cuda", 8, start]
                    theirs.append(run("torch", peer))
            if None in mine + theirs:
                rows.append(f"{model}: no figures")
                continue
            for part in ("training", "inference"):
                took = median(mine, part)
                beside = ""
                if theirs:
                    peer = median(theirs, part)
                    beside = f", PyTorch {peer:.2f} ms, ratio {peer / took:.2f}x (wanted 1.0x)"
                rows.append(f"{model} {part}: {took:.2f} ms{beside}")
            if theirs:
                off = abs(mine[0]["loss"] - theirs[0]["loss"]) / abs(theirs[0]["loss"])
                peaks = [line["peak_gpu_bytes"] / 2**20 for line in (mine[0], theirs[0])]
                rows.append(f"{model}: loss off by {off:.1e}; peak {peaks[0]:.0f} MiB, PyTorch {peaks[1]:.0f} MiB")
    print("\n" + "\n".join(rows))


if __name__ == "__main__":
    main()
