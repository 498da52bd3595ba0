"""MMN with DistilBERT on one GPU: ours and PyTorch eager in turns, TF32 allowed on both.

usage: mmn_step_gpu.py TEXT_STEP [STEPS] [ROUNDS]

TEXT_STEP is `crates/cuemark-models/examples/text_step.rs` built with `--features cuda`. Run it with PyTorch's CUDA
libraries on LD_LIBRARY_PATH. Prints a line of JSON per run and a table at the end.
"""

import pathlib
import sys
import tempfile

from torch_steps import rows, run

HERE = pathlib.Path(__file__).parent
# The published batch of Charades-STA on one GPU, and the part of it that each of the published four had.
BATCHES = [48, 12]


def main():
    ours, steps, rounds = sys.argv[1], *(int(word) for word in (sys.argv[2:] + ["20", "3"][len(sys.argv) - 2 :]))
    told = []
    with tempfile.TemporaryDirectory() as folder:
        start = pathlib.Path(folder, "start.safetensors")
        for batch in BATCHES:
            mine, theirs = [], []
            for _ in range(rounds):
                mine.append(run("ours", [ours, batch, steps, "cuda:0", start]))
                theirs.append(run("torch", [sys.executable, HERE / "mmn_step.py", steps, "cuda", 8, start]))
            told += rows(f"mmn, {batch} videos", mine, theirs)
    print("\n" + "\n".join(told))


if __name__ == "__main__":
    main()
