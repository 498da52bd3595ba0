"""SlowFast R50 8x8 in plain PyTorch, written by us, up to its pooled row: the other side of `bench encode` on a GPU.

Weights are drawn, under PySlowFast's names; normalisation is folded into the kernels, the fastest form of this file.

    slowfast_torch.py WEIGHTS    draws them into a file that both sides read
"""

import sys

import torch
import torch.nn.functional as F

BLOCKS, TIMES = (3, 4, 6, 3), ((1, 1, 3, 3), (3, 3, 3, 3))
FRAMES, CHANNELS, STEM = 4, 8, 64


def units():
    """Name of every kernel, name of its normalisation, and its shape."""
    def unit(prefix, conv, norm, *shape):
        return f"{prefix}.{conv}.weight", f"{prefix}.{norm}", shape

    for pathway, times in ((0, 1), (1, 5)):
        width = STEM if pathway == 0 else STEM // CHANNELS
        yield unit(f"s1.pathway{pathway}_stem", "conv", "bn", width, 3, times, 7, 7)
    width = STEM
    for stage, blocks in enumerate(BLOCKS):
        fast, inner = width // CHANNELS, STEM << stage
        yield unit(f"s{stage + 1}_fuse", "conv_f2s", "bn", 2 * fast, fast, 7, 1, 1)
        for pathway, before in ((0, width + 2 * fast), (1, fast)):
            share = 1 if pathway == 0 else CHANNELS
            small, large = inner // share, 4 * inner // share
            for number in range(blocks):
                name, given = f"s{stage + 2}.pathway{pathway}_res{number}", before if number == 0 else large
                if number == 0:
                    yield unit(name, "branch1", "branch1_bn", large, given, 1, 1, 1)
                yield unit(f"{name}.branch2", "a", "a_bn", small, given, TIMES[pathway][stage], 1, 1)
                yield unit(f"{name}.branch2", "b", "b_bn", small, small, 1, 3, 3)
                yield unit(f"{name}.branch2", "c", "c_bn", large, small, 1, 1, 1)
        width = 4 * inner


def draw():
    torch.manual_seed(7)
    tensors = {}
    for conv, norm, shape in units():
        tensors[conv] = torch.randn(shape) * (2.0 / (shape[1] * shape[2] * shape[3] * shape[4])) ** 0.5
        for name, value in (("weight", 0.7), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0)):
            tensors[f"{norm}.{name}"] = torch.full((shape[0],), value)
    return tensors


class SlowFast:
    def __init__(self, tensors, device):
        self.layers = {}
        for conv, norm, _ in units():
            weight, bias, mean, var = (tensors[f"{norm}.{name}"] for name in ("weight", "bias", "running_mean", "running_var"))
            scale = weight * (var + 1e-5).rsqrt()
            kernel = tensors[conv] * scale[:, None, None, None, None]
            self.layers[conv] = (kernel.to(device), (bias - mean * scale).to(device))

    def conv(self, x, name, stride=(1, 1, 1), relu=True):
        kernel, bias = self.layers[f"{name}.weight"]
        x = F.conv3d(x, kernel, bias, stride, [size // 2 for size in kernel.shape[2:]])
        return F.relu_(x) if relu else x

    def stage(self, x, stage, pathway):
        for number in range(BLOCKS[stage]):
            name = f"s{stage + 2}.pathway{pathway}_res{number}"
            stride = (1, 2, 2) if number == 0 and stage > 0 else (1, 1, 1)
            straight = self.conv(x, f"{name}.branch1", stride, False) if number == 0 else x
            around = self.conv(x, f"{name}.branch2.a")
            around = self.conv(around, f"{name}.branch2.b", stride)
            x = F.relu_(self.conv(around, f"{name}.branch2.c", relu=False).add_(straight))
        return x

    def __call__(self, x):
        """x [batch, 3, frames, 224, 224]; returns [batch, 2304]."""
        pool = lambda x: F.max_pool3d(x, (1, 3, 3), (1, 2, 2), (0, 1, 1))
        slow = pool(self.conv(x[:, :, ::FRAMES], "s1.pathway0_stem.conv", (1, 2, 2)))
        fast = pool(self.conv(x, "s1.pathway1_stem.conv", (1, 2, 2)))
        for stage in range(len(BLOCKS)):
            handed = self.conv(fast, f"s{stage + 1}_fuse.conv_f2s", (FRAMES, 1, 1))
            slow = self.stage(torch.cat([slow, handed], 1), stage, 0)
            fast = self.stage(fast, stage, 1)
        return torch.cat([slow.mean((2, 3, 4)), fast.mean((2, 3, 4))], 1)


if __name__ == "__main__":
    torch.save(draw(), sys.argv[1])
