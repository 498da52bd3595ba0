"""What the peers of training steps share: the file that our side starts them from, timing, and running both sides in turns."""

import json
import os
import statistics
import struct
import subprocess
import time

try:
    import torch
except ImportError:  # a script that only runs the sides needs none
    torch = None


def read_safetensors(path):
    kinds = {"F32": torch.float32, "I64": torch.int64, "U8": torch.uint8, "U32": torch.uint32, "BOOL": torch.bool}
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        start, end = (8 + length + offset for offset in entry["data_offsets"])
        flat = torch.frombuffer(bytearray(data[start:end]), dtype=kinds[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def prepare(threads):
    torch.set_num_threads(threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True


def answering(work, steps, device):
    """As `timed`; nothing where `ONLY_TRAINING` in the environment asks for steps of training alone."""
    return ([], [], None) if "ONLY_TRAINING" in os.environ else timed(work, steps, device)


def timed(work, steps, device):
    """Seconds and processor seconds of every run after a first that does not count, or of that one where there are no others,
    and what the first gave."""
    wall, cpu, first = [], [], None
    for number in range(steps + 1):
        began, began_cpu = time.perf_counter(), time.process_time()
        result = work()
        if device.type == "cuda":
            torch.cuda.synchronize()
        if number or not steps:
            wall.append(time.perf_counter() - began)
            cpu.append(time.process_time() - began_cpu)
        if not number:
            first = result
    return wall, cpu, first


def step_of(model, optimizer, loss_of, limit):
    """One step of training: gradients of `loss_of()`, cut to the norm `limit`, and the optimiser's move. Gives the loss."""

    def train():
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), limit)
        optimizer.step()
        return loss.item()

    return train


def tell(model, inference, training, loss, device):
    """The line of JSON that every side prints."""
    line = {
        "inference_s": inference[0], "training_s": training[0], "inference_cpu_s": inference[1],
        "training_cpu_s": training[1], "loss": loss, "torch": torch.__version__,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "peak_gpu_bytes": torch.cuda.max_memory_allocated() if device.type == "cuda" else 0,
    }
    print(json.dumps(line))


def run(side, command):
    """Runs one side; its line of JSON, or nothing where it failed, which is told."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        print("FAILED:", *command, "\n", done.stderr[-3000:], flush=True)
        return None
    line = json.loads(done.stdout.strip().splitlines()[-1])
    print(side, json.dumps(line), flush=True)
    return line


def median(lines, part):
    """Milliseconds."""
    return statistics.median(second for line in lines for second in line[part + "_s"]) * 1e3


def rows(name, mine, theirs):
    """What both sides took, for a person. `theirs` may be empty."""
    if None in mine + theirs:
        return [f"{name}: no figures"]
    told = []
    for part in ("training", "inference"):
        took, beside = median(mine, part), ""
        if theirs:
            peer = median(theirs, part)
            beside = f", PyTorch {peer:.2f} ms, ratio {peer / took:.2f}x (wanted 1.0x)"
        told.append(f"{name} {part}: {took:.2f} ms{beside}")
    if theirs:
        off = abs(mine[0]["loss"] - theirs[0]["loss"]) / abs(theirs[0]["loss"])
        peaks = [line["peak_gpu_bytes"] / 2**20 for line in (mine[0], theirs[0])]
        told.append(f"{name}: loss off by {off:.1e}; peak {peaks[0]:.0f} MiB, PyTorch {peaks[1]:.0f} MiB")
    return told
