"""The table of `cargo xtask bench threads` on a machine without Rust: programs that were built elsewhere, beside PyTorch.

usage: threads_by_hand.py SECONDS FOLDER [FOLDER..]

Each FOLDER holds the examples `text_step`, `train_step` and `joint_step` of one state of the code, built by
`cargo build --release -p cuemark-models --example text_step --example train_step --example joint_step`. In every cell the folders
take turns, round after round. PyTorch is loaded once and forked for each of its cells. No cell is begun after SECONDS; what has
been measured by then is printed at the end: medians of all steps of all rounds with the smallest and the largest, in milliseconds.
Rows of one network and folder whose weights differ after as many steps are told: no number of threads may change a bit.
"""

import contextlib
import io
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
# Of `xtask/src/bench/threads.rs`.
SETTINGS = {
    "mmn published": "network = { map = { pre_clips = 32, clips = 16, counts = [15] }, kernel = 5, layers = 8 }\n"
    "matching = { margin = 0.4, weight = 0.05, switch_epoch = 7 }\ntext = { frozen_epochs = 4 }",
    "mmn world": "text = { rate = 1.0 }\nmatching = { margin = 0.3, weight = 0.05 }\n[network]\nhidden = 64\njoint = 64\nkernel = 3\n"
    "layers = 3\nmap = { pre_clips = 32, clips = 16, counts = [15] }\n"
    "text = { dim = 64, layers = 2, heads = 4, ffn = 128, positions = 64 }",
    "tmlga published": "clips = 200",
    "qd-detr published": "",
    "2d-tan published": "map = { pre_clips = 256, clips = 16, counts = [15] }\nkernel = 5\nlayers = 8",
    "2d-tan world": "map = { pre_clips = 32, clips = 16, counts = [15] }\nhidden = 64\nlstm_layers = 1\nkernel = 3\nlayers = 4",
    "tmlga world": "clips = 128\nquery_hidden = 48\nwidth = 96\nhidden = 48\ndropout = 0.2",
    "qd-detr world": "clips = 75\nwords = 32\nnetwork = { hidden = 128, heads = 4, ffn = 256, input_dropout = 0.1 }",
}
# Our words before the number of steps, with the file of settings before or after, and the peer's script and words.
SIDES = {
    "mmn published": ("text_step", ["4"], "after", "mmn_step.py", []),
    "mmn world": ("text_step", ["16"], "after", "mmn_step.py", []),
    "tmlga published": ("train_step", ["tmlga", "SETTINGS", "32"], "", "tmlga_step.py", []),
    "qd-detr published": ("joint_step", ["qd-detr", "32"], "after", "joint_step.py", ["qd-detr"]),
    "2d-tan world": ("train_step", ["2d-tan", "SETTINGS", "16"], "", "train_step.py", ["16", "15", "3", "4", "16"]),
    "tmlga world": ("train_step", ["tmlga", "SETTINGS", "32"], "", "tmlga_step.py", []),
    "qd-detr world": ("joint_step", ["qd-detr", "64"], "after", "joint_step.py", ["qd-detr"]),
    "2d-tan published": ("train_step", ["2d-tan", "SETTINGS", "8"], "", "train_step.py", ["16", "15", "5", "8", "8"]),
}
THREADS = [16, 8, 4, 2, 1]
# Network, PyTorch's steps after one that does not count with one or two threads and with more, rounds. Ours makes as many with any
# number of threads, so that weights can be compared.
ROWS = [
    ("mmn world", 12, 30, 2),
    ("2d-tan world", 12, 30, 1),
    ("tmlga world", 8, 20, 1),
    ("qd-detr world", 2, 4, 1),
    ("tmlga published", 2, 6, 1),
    ("qd-detr published", 1, 4, 1),
    ("mmn published", 1, 3, 1),
    ("2d-tan published", 1, 2, 1),
]


def ours(folder, network, threads, steps, work):
    program, words, after, _, _ = SIDES[network]
    settings = work / (network.replace(" ", "-") + ".toml")
    settings.write_text(SETTINGS[network])
    words = [str(settings) if word == "SETTINGS" else word for word in words]
    command = [str(folder / program), *words, str(steps), "cpu", str(work / "start.safetensors")]
    environment = {**os.environ, "RAYON_NUM_THREADS": str(threads), "CANDLE_NUM_THREADS": "1", "ONLY_TRAINING": "1"}
    done = subprocess.run(command + ([str(settings)] if after else []), capture_output=True, text=True, env=environment)
    if done.returncode:
        return {"failed": done.stderr[-500:]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def peer(network, threads, steps, work):
    """In a process forked from this one, where PyTorch is loaded and nothing has been computed."""
    script, words = SIDES[network][3:]
    told = work / "peer.json"
    told.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        try:
            os.environ["ONLY_TRAINING"] = "1"
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                __import__(script.removesuffix(".py")).measure(*words, steps, "cpu", threads, str(work / "start.safetensors"))
            told.write_text(printed.getvalue().strip().splitlines()[-1])
        except Exception:
            traceback.print_exc()
        finally:
            # Whatever became of it, the parent's work is not done here a second time.
            os._exit(0)
    os.waitpid(child, 0)
    return json.loads(told.read_text()) if told.exists() else {"failed": "PyTorch's side"}


def main():
    until = time.monotonic() + float(sys.argv[1])
    folders = [pathlib.Path(folder).resolve() for folder in sys.argv[2:]]
    sys.path.insert(0, str(HERE))
    found, weights = {}, {}
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        cells = [(row, threads) for row in ROWS for threads in THREADS]
        for (network, few, many, rounds), threads in cells:
            for _ in range(rounds):
                sides = [(folder.name, lambda folder=folder: ours(folder, network, threads, many, work)) for folder in folders]
                sides.append(("PyTorch", lambda: peer(network, threads, few if threads < 4 else many, work)))
                for name, measure in sides:
                    if time.monotonic() > until:
                        break
                    line, cell = measure(), (network, threads, name)
                    if "failed" in line:
                        print("FAILED", *cell, line["failed"], flush=True)
                        continue
                    found.setdefault(cell, []).append(line)
                    if "weights" in line:
                        before = weights.setdefault((network, name), line["weights"])
                        if before != line["weights"]:
                            print("OTHER WEIGHTS", *cell, flush=True)
    print(f"{'network':20} {'threads':>7} {'side':12} {'median':>9} {'least':>9} {'most':>9} {'processor':>9} {'loss':>10}")
    for (network, threads, name), lines in found.items():
        seconds = [1e3 * second for line in lines for second in line["training_s"]]
        processor = statistics.median(1e3 * second for line in lines for second in line["training_cpu_s"])
        middle = statistics.median(seconds)
        print(f"{network:20} {threads:7} {name:12} {middle:9.1f} {min(seconds):9.1f} {max(seconds):9.1f} {processor:9.1f}"
              f" {lines[0]['loss']:10.6f} {lines[0].get('weights', '')}")


if __name__ == "__main__":
    import torch  # noqa: F401  loaded here, for every fork

    main()
