"""The other side of `cargo xtask bench train`: 2D-TAN in its published, dense form in plain PyTorch.

usage: train_step.py CLIPS COUNTS KERNEL LAYERS BATCH STEPS DEVICE THREADS FILE.safetensors

COUNTS is a list like 15,8,8. Parameters and inputs come from the file that our side wrote, so that both compute the same
loss. Prints one JSON line as `crates/cuemark-models/examples/train_step.rs` does.
"""

import sys

import torch
from torch import nn
from torch.nn import functional as F

from torch_steps import answering, prepare, read_safetensors, step_of, tell, timed

MIN_IOU, MAX_IOU = 0.5, 1.0
LIMIT, RATE = 10.0, 1e-4


def fill_steps(clips, counts):
    """(offset, stride, kernel, advance) of every pooling, and the mask of the map."""
    mask = torch.zeros(clips, clips)
    mask.fill_diagonal_(1)
    steps, offset, stride = [], 0, 1
    for scale, count in enumerate(counts):
        for number in range(count):
            offset += stride
            wide = scale > 0 and number == 0
            steps.append((offset, stride, 3 if wide else 2, 2 if wide else 1))
            for start in range(0, clips - offset, stride):
                mask[start, start + offset] = 1
        stride *= 2
    return steps, mask


class FrameLayer(nn.Module):
    def __init__(self, visual, hidden, clips, rows):
        super().__init__()
        self.vis_conv = nn.Conv1d(visual, hidden, 1)
        self.average = rows // clips

    def forward(self, visual):
        return F.avg_pool1d(F.relu(self.vis_conv(visual)), self.average, self.average)


class FusionLayer(nn.Module):
    def __init__(self, word, hidden, lstm_layers):
        super().__init__()
        self.textual_encoder = nn.LSTM(word, hidden, lstm_layers, batch_first=True)
        self.tex_linear = nn.Linear(hidden, hidden)
        self.vis_conv = nn.Conv2d(hidden, hidden, 1)

    def forward(self, words, map_, mask):
        query = self.tex_linear(self.textual_encoder(words)[0][:, -1])
        return F.normalize(query[:, :, None, None] * self.vis_conv(map_)) * mask


class MapLayer(nn.Module):
    def __init__(self, hidden, kernel, layers, mask):
        super().__init__()
        pads = [(kernel - 1) * layers // 2] + [0] * (layers - 1)
        self.convs = nn.ModuleList(nn.Conv2d(hidden, hidden, kernel, padding=pad) for pad in pads)
        self.weights, seen = [], mask[None, None]
        for pad in pads:
            count = torch.round(F.conv2d(seen, torch.ones(1, 1, kernel, kernel, device=mask.device), padding=pad))
            seen = (count > 0).float()
            self.weights.append(seen / count.clamp(min=1))

    def forward(self, x):
        for conv, weight in zip(self.convs, self.weights):
            x = F.relu(conv(x)) * weight
        return x


class Tan2d(nn.Module):
    def __init__(self, sizes, clips, counts, kernel, layers, device):
        super().__init__()
        visual, word, hidden, rows, lstm_layers = sizes
        self.steps, mask = fill_steps(clips, counts)
        self.mask = mask.to(device)
        self.frame_layer = FrameLayer(visual, hidden, clips, rows)
        self.fusion_layer = FusionLayer(word, hidden, lstm_layers)
        self.map_layer = MapLayer(hidden, kernel, layers, self.mask)
        self.pred_layer = nn.Conv2d(hidden, 1, 1)

    def moments(self, clips):
        batch, hidden, count = clips.shape
        map_ = clips.new_zeros(batch, hidden, count, count)
        along = torch.arange(count, device=clips.device)
        map_[:, :, along, along] = clips
        for offset, stride, kernel, advance in self.steps:
            clips = F.max_pool1d(clips, kernel, advance)
            starts = torch.arange(0, count - offset, stride, device=clips.device)
            map_[:, :, starts, starts + offset] = clips
        return map_

    def forward(self, visual, words):
        map_ = self.moments(self.frame_layer(visual))
        fused = self.fusion_layer(words, map_, self.mask)
        return self.pred_layer(self.map_layer(fused)).squeeze(1) * self.mask


def targets(spans, clips):
    """Scaled overlap of every cell with each span, [batch, clips, clips]."""
    start = torch.arange(clips, device=spans.device)[None, :, None] / clips
    end = (torch.arange(clips, device=spans.device)[None, None, :] + 1) / clips
    first, last = spans[:, 0, None, None], spans[:, 1, None, None]
    overlap = (torch.minimum(end, last) - torch.maximum(start, first)).clamp(min=0)
    iou = overlap / (torch.maximum(end, last) - torch.minimum(start, first))
    return ((iou - MIN_IOU) / (MAX_IOU - MIN_IOU)).clamp(0, 1)


def measure(clips, counts, kernel, layers, batch, steps, device, threads, path):
    clips, kernel, layers = int(clips), int(kernel), int(layers)
    prepare(threads)
    device = torch.device(device)
    tensors = read_safetensors(path)
    inputs = {name[3:]: tensors.pop(name).to(device) for name in list(tensors) if name.startswith("in.")}
    visual, words, spans = inputs["visual"].transpose(1, 2).contiguous(), inputs["words"], inputs["spans"]
    assert visual.shape[0] == int(batch), visual.shape
    lstm_layers = sum(name.startswith("fusion_layer.textual_encoder.weight_hh") for name in tensors)
    hidden = tensors["pred_layer.weight"].shape[1]
    sizes = (visual.shape[1], words.shape[2], hidden, visual.shape[2], lstm_layers)
    model = Tan2d(sizes, clips, [int(count) for count in counts.split(",")], kernel, layers, device)
    model.load_state_dict(tensors)
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    wanted, valid = targets(spans, clips), model.mask.expand(len(spans), -1, -1) > 0

    @torch.no_grad()
    def answer():
        torch.sigmoid(model(visual, words))[valid].cpu()

    def loss_of():
        probability = torch.sigmoid(model(visual, words))
        return F.binary_cross_entropy(probability[valid], wanted[valid])

    inference = answering(answer, steps, device)
    training = timed(step_of(model, optimizer, loss_of, LIMIT), steps, device)
    tell(model, inference, training, training[2], device)


if __name__ == "__main__":
    *words, steps, device, threads, path = sys.argv[1:]
    measure(*words, int(steps), device, int(threads), path)
