"""The other side of TMLGA in `cargo xtask bench threads`: guided attention in plain PyTorch.

usage: tmlga_step.py STEPS DEVICE THREADS FILE.safetensors
       tmlga_step.py check FIXTURE.safetensors …

The first form starts from the parameters and inputs that our side (`crates/cuemark-models/examples/train_step.rs`) wrote, and
prints one JSON line as that does. The second holds the network to the reference's fixture and exits 1 when it is off.
"""

import json
import math
import pathlib
import sys

import torch
from torch import nn

from torch_steps import answering, prepare, read_safetensors, step_of, tell, timed

LIMIT, RATE, DROPOUT, TINY = 10.0, 1e-4, 0.5, 1e-13


class Tmlga(nn.Module):
    def __init__(self, parameters, dropout):
        super().__init__()
        shape = lambda name: parameters[name].shape
        layers = lambda prefix: sum(key.startswith(prefix + "weight_hh") and "reverse" not in key for key in parameters)
        query, localiser = "model_df.tail_df.lstm.", "rnn_localization."
        gru = lambda prefix, p: nn.GRU(
            shape(prefix + "weight_ih_l0")[1], shape(prefix + "weight_hh_l0")[1], layers(prefix), bias=False,
            batch_first=True, bidirectional=True, dropout=p if layers(prefix) > 1 else 0.0,
        )
        linear = lambda name: nn.Linear(*reversed(shape(name + ".weight")))
        self.model_df = nn.ModuleDict({
            "tail_df": nn.ModuleDict({"lstm": gru(query, 0.0)}),
            "head_df": nn.ModuleDict({"mlp": nn.Sequential(linear("model_df.head_df.mlp.0"))}),
        })
        self.reduction, self.rnn_localization = linear("reduction"), gru(localiser, dropout)
        self.starting, self.ending = linear("starting"), linear("ending")
        self.load_state_dict(parameters)

    @staticmethod
    def run(gru, x, lengths):
        """Over the real steps of each row; all at once where every row is full."""
        if int(lengths.min()) == x.shape[1]:
            return gru(x)[0]
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return nn.utils.rnn.pad_packed_sequence(gru(packed)[0], batch_first=True, total_length=x.shape[1])[0]

    def forward(self, visual, mask, words, lengths):
        clips, counts = lengths
        read = self.run(self.model_df["tail_df"]["lstm"], words, counts).sum(1) / counts[:, None].to(words)
        filtered = self.model_df["head_df"]["mlp"](read).tanh()
        video = self.reduction(visual)
        logits = (video @ filtered[:, :, None]).squeeze(2) / counts[:, None].to(words).sqrt()
        attention = masked_softmax(logits, mask)
        found = self.run(self.rnn_localization, video * attention[:, :, None], clips)
        return attention, masked_softmax(self.starting(found).squeeze(2), mask), masked_softmax(self.ending(found).squeeze(2), mask)


def masked_softmax(logits, mask):
    everything = torch.softmax(logits * mask, 1) * mask
    return everything / (everything.sum(1, keepdim=True) + TINY) + TINY


def loss_of(found, labels, mask):
    attention, starts, ends = found
    lift = 1 - mask
    divergence = lambda label, p: -(label * ((p * mask + lift).log() - (label + lift).log())).sum(1)
    boundaries = (divergence(labels["start"], starts) + divergence(labels["end"], ends)).mean()
    missed = (1 - attention).clamp(min=1e-12).log()
    return boundaries - ((1 - labels["inside"]) * missed).sum(1).mean()


def labels_of(spans, clips):
    """Soft labels of spans in videos that are all full."""
    labels = {name: torch.zeros(len(spans), clips) for name in ("start", "end", "inside")}
    beside = (1 - (clips - 3) * 1e-10 - 0.5) / 2
    for row, (start, end) in enumerate(spans.tolist()):
        first = min(max(math.floor((start + 1e-9) * clips), 0), clips - 1)
        last = max(min(max(math.ceil(end * clips - 1e-6), 1) - 1, clips - 1), first)
        for name, place in (("start", first), ("end", last)):
            labels[name][row] = 1e-10
            labels[name][row, max(place - 1, 0) : place + 2] = beside
            labels[name][row, place] = 0.5
        labels["inside"][row, first:last] = 1
    return labels


def check(path):
    tensors = read_safetensors(path)
    about = json.loads(pathlib.Path(path).with_suffix(".json").read_text())
    named = lambda prefix: {key[len(prefix) :]: value for key, value in tensors.items() if key.startswith(prefix)}
    given, wanted = named("in."), named("grad.")
    model = Tmlga(named("param."), 0.0)
    lengths = given["video_len"].long(), given["token_len"].long()
    mask = (torch.arange(given["video_features"].shape[1])[None] < lengths[0][:, None]).float()
    found = model(given["video_features"], mask, given["token_vectors"], lengths)
    labels = {"start": given["start_label"], "end": given["end_label"], "inside": given["inside_label"]}
    total = loss_of(found, labels, mask)
    total.backward()
    off = {"total": abs(total.item() - tensors["loss.total"].item()) / abs(tensors["loss.total"].item())}
    for name, value in zip(("attention", "start_prob", "end_prob"), found):
        off[name] = (value - tensors["out." + name]).abs().max().item()
    for name, parameter in model.named_parameters():
        if name in wanted:
            gap = (parameter.grad - wanted[name]).abs().max().item() / wanted[name].abs().max().item()
            off["gradients"] = max(off.get("gradients", 0.0), gap)
    good = all(value <= (about["tolerance"]["grad_rel"] if key == "gradients" else 1e-4) for key, value in off.items())
    print(about["fixture"], "ok" if good else "OFF", json.dumps(off))
    return good


def measure(steps, device, threads, path):
    prepare(threads)
    device = torch.device(device)
    tensors = read_safetensors(path)
    given = {name[3:]: tensors.pop(name).to(device) for name in list(tensors) if name.startswith("in.")}
    visual, words = given["visual"], given["words"]
    model = Tmlga(tensors, DROPOUT).to(device)
    mask = torch.ones(visual.shape[:2], device=device)
    lengths = [torch.full((len(x),), x.shape[1]) for x in (visual, words)]
    labels = {name: value.to(device) for name, value in labels_of(given["spans"].cpu(), visual.shape[1]).items()}
    model.eval()
    with torch.no_grad():
        loss = loss_of(model(visual, mask, words, lengths), labels, mask).item()

    @torch.no_grad()
    def answer():
        _, starts, ends = model(visual, mask, words, lengths)
        pairs = (starts[:, :, None] * ends[:, None, :]).triu()
        pairs.flatten(1).sort(dim=1, descending=True)[1].cpu()

    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)

    train = step_of(model, optimizer, lambda: loss_of(model(visual, mask, words, lengths), labels, mask), LIMIT)
    inference = answering(answer, steps, device)
    model.train()
    training = timed(train, steps, device)
    tell(model, inference, training, loss, device)


if __name__ == "__main__":
    if sys.argv[1:2] == ["check"]:
        sys.exit(0 if all([check(path) for path in sys.argv[2:]]) else 1)
    steps, device, threads, path = sys.argv[1:]
    measure(int(steps), device, int(threads), path)
