"""Networks of moments and highlights on one GPU: ours and PyTorch eager in turns, TF32 allowed on both.

usage: joint_step_gpu.py JOINT_STEP [STEPS] [ROUNDS]

JOINT_STEP is `crates/cuemark-models/examples/joint_step.rs` built with `--features cuda`. Run it with PyTorch's CUDA
libraries on LD_LIBRARY_PATH. Prints a line of JSON per run and a table at the end.
"""

import pathlib
import sys
import tempfile

from torch_steps import rows, run

HERE = pathlib.Path(__file__).parent
BATCH = 32
WITH_PEER = ["moment-detr", "qd-detr"]
ALONE = ["eatr", "cg-detr", "uvcom", "tr-detr", "taskweave", "univtg"]


def main():
    ours, steps, rounds = sys.argv[1], *(int(word) for word in (sys.argv[2:] + ["30", "3"][len(sys.argv) - 2 :]))
    told = []
    with tempfile.TemporaryDirectory() as folder:
        for model in WITH_PEER + ALONE:
            start, mine, theirs = pathlib.Path(folder, model), [], []
            for _ in range(rounds if model in WITH_PEER else 1):
                mine.append(run("ours", [ours, model, BATCH, steps, "cuda:0", start]))
                if model in WITH_PEER:
                    peer = [sys.executable, HERE / "joint_step.py", model, steps, "cuda", 8, start]
                    theirs.append(run("torch", peer))
            told += rows(model, mine, theirs)
    print("\n" + "\n".join(told))


if __name__ == "__main__":
    main()
