"""2D-TAN on one GPU, ours and dense PyTorch eager side by side, TF32 allowed on both.

usage: train_step_gpu.py TRAIN_STEP [STEPS]

TRAIN_STEP is `crates/cuemark-models/examples/train_step.rs` built with `--features cuda`. Run it with PyTorch's CUDA
libraries on LD_LIBRARY_PATH. Prints a line of JSON per run and a table at the end.
"""

import pathlib
import sys
import tempfile

from torch_steps import median, run

HERE = pathlib.Path(__file__).parent
# Name, clips, counts, kernel, batch, wanted ratio of the published network and of the one on valid cells.
CASES = [
    ("N=16 k=5 batch 64", 16, "15", 5, 64, (1.0, 1.5)),
    ("N=64 k=9 batch 32", 64, "15,8,8", 9, 32, (1.2, 2.5)),
]
LAYERS = 4


def main():
    ours, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, clips, counts, kernel, batch, wanted in CASES:
            lines = {}
            for support in ("exact", "valid"):
                settings = pathlib.Path(folder, "settings.toml")
                settings.write_text(
                    f"map = {{ pre_clips = 256, clips = {clips}, counts = [{counts}] }}\n"
                    f'kernel = {kernel}\nlayers = {LAYERS}\nsupport = "{support}"\n'
                )
                start = pathlib.Path(folder, f"start-{support}.safetensors")
                lines[support] = run("ours", [ours, "2d-tan", settings, batch, steps, "cuda:0", start])
            script = HERE / "train_step.py"
            start = pathlib.Path(folder, "start-exact.safetensors")
            peer = run("torch", [sys.executable, script, clips, counts, kernel, LAYERS, batch, steps, "cuda", 8, start])
            for support, aim in zip(("exact", "valid"), wanted):
                line = lines[support]
                if line is None or peer is None:
                    rows.append(f"{name} {support}: no figures")
                    continue
                cells = line["cells"]
                parts = []
                for part in ("training", "inference"):
                    theirs, mine = (median([side], part) for side in (peer, line))
                    parts.append(f"{part} {theirs:.2f} / {mine:.2f} ms = {theirs / mine:.2f}x")
                rows.append(
                    f"{name} {support}: {'; '.join(parts)} (wanted {aim}x, bound {cells['dense'] / cells['sparse']:.2f}x, "
                    f"products {cells['dense'] / cells['products']:.2f}x); peak {peer['peak_gpu_bytes'] / 2**20:.0f} / "
                    f"{line['peak_gpu_bytes'] / 2**20:.0f} MiB; first loss {peer['loss']:.6f} / {line['loss']:.6f}"
                )
    print("\nPyTorch / ours")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
