"""The other side of `bench encode` for clips and videos: PyTorch, and PyAV for decoding. Prints one line of JSON.

    encode_vision.py clips i3d|slowfast WEIGHTS FRAMES COUNT DEVICE THREADS [BATCH]
    encode_vision.py pipeline i3d|efficientnet-lite0 WEIGHTS VIDEO DEVICE THREADS
"""

import json
import queue
import sys
import threading
import time

import numpy
import torch

import efficientnet_lite_torch
import i3d_torch
import slowfast_torch


def sync(device):
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def clips(name, weights, frames, count, device, batch):
    if name == "i3d":
        i3d = i3d_torch.I3D(i3d_torch.load(weights)).folded().to(device)
        net, mean, deviation = lambda x: i3d(x)[0], 127.5, 127.5
    else:
        net, mean, deviation = slowfast_torch.SlowFast(torch.load(weights), device), 255 * 0.45, 255 * 0.225
    rgb = numpy.random.default_rng(6).integers(0, 256, (batch, frames, 224, 224, 3), dtype=numpy.uint8)
    seconds = []
    for n in range(-(-count // batch) + 1):
        begin = time.perf_counter()
        x = torch.from_numpy(rgb).to(device).permute(0, 4, 1, 2, 3).float().sub_(mean).div_(deviation)
        row = net(x).cpu()
        sync(device)
        if n > 0:
            seconds.append((time.perf_counter() - begin) / batch)
    return {"seconds": seconds, "row": row[0, :8].tolist()}


def sampled(path, fps, flags):
    """The picture on screen every 1/fps seconds, shorter side 256, middle 224, by the stream's own times."""
    import av
    with av.open(path) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        first, held, n = None, None, 0
        for frame in container.decode(stream):
            first = frame.time if first is None else first
            while held is not None and n / fps < frame.time - first - 1e-9:
                yield picture(held, flags)
                n += 1
            held = frame
        if held is not None:
            end = held.time - first + float(1 / stream.average_rate)
            while n / fps < end - 1e-9:
                yield picture(held, flags)
                n += 1


def picture(frame, flags):
    scale = 256 / min(frame.width, frame.height)
    width, height = (256 if side == min(frame.width, frame.height) else round(side * scale / 2) * 2
                     for side in (frame.width, frame.height))
    rgb = frame.reformat(width, height, "rgb24", interpolation=flags).to_ndarray()
    top, left = (height - 224) // 2, (width - 224) // 2
    return rgb[top:top + 224, left:left + 224]


def pipeline(name, weights, video, device):
    """Decoding runs in a thread of its own, as ours does; the libraries release the interpreter lock."""
    if name == "i3d":
        net = i3d_torch.I3D(i3d_torch.load(weights)).folded().to(device)
        fps, size, flags = 24, 24, "BILINEAR"
    else:
        net = efficientnet_lite_torch.EfficientNetLite(weights, device)
        fps, size, flags = 1, 16, "BICUBIC"
    begin = time.perf_counter()
    waiting = queue.Queue(2)

    def decode():
        batch = []
        for rgb in sampled(video, fps, flags):
            batch.append(rgb)
            if len(batch) == size:
                waiting.put(numpy.stack(batch))
                batch = []
        if batch:
            waiting.put(numpy.stack(batch if name != "i3d" else batch + [batch[-1]] * (size - len(batch))))
        waiting.put(None)

    threading.Thread(target=decode).start()
    rows, total, width = 0, 0.0, 1
    while (batch := waiting.get()) is not None:
        x = torch.from_numpy(batch).to(device).float()
        if name == "i3d":
            made = net(x.div_(127.5).sub_(1.0).permute(3, 0, 1, 2)[None])[0]
        else:
            made = net(x.sub_(127.0).div_(128.0).permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last))
        rows, width = rows + made.shape[0], made.shape[1]
        total += float(made.double().sum())
    sync(device)
    return {"seconds": [time.perf_counter() - begin], "rows": rows, "mean": total / (rows * width)}


def main():
    kind, name, weights, *rest = sys.argv[1:]
    with torch.inference_mode():
        if kind == "clips":
            frames, count, device, threads, *batch = rest
            torch.set_num_threads(int(threads))
            line = clips(name, weights, int(frames), int(count), device, int(batch[0]) if batch else 1)
        else:
            video, device, threads = rest
            torch.set_num_threads(int(threads))
            line = pipeline(name, weights, video, device)
    print(json.dumps(line))


main()
