"""Moment-DETR and QD-DETR in plain PyTorch, for `cargo xtask bench joint`.

Parameters carry the published names. Attention goes through PyTorch's fused product (`scaled_dot_product_attention`), which
is faster than what the public code runs; matching is SciPy's, on the CPU, as there.
"""

import math

import torch
from scipy.optimize import linear_sum_assignment
from torch import nn
from torch.nn import functional as F

COST = {"span": 10.0, "giou": 1.0, "label": 4.0}
WEIGHT = {"span": 10.0, "giou": 1.0, "label": 4.0}
BACKGROUND, MARGIN, TAU, LEVELS = 0.1, 0.2, 0.5, 12


def hide(real):
    """What is added to attention logits so that padded keys are not seen: [batch, 1, 1, keys]."""
    return torch.zeros_like(real).masked_fill(real == 0, float("-inf"))[:, None, None, :]


def heads(x, count):
    batch, steps, width = x.shape
    return x.view(batch, steps, count, width // count).transpose(1, 2)


def joined(x):
    batch, count, steps, width = x.shape
    return x.transpose(1, 2).reshape(batch, steps, count * width)


class Attention(nn.Module):
    def __init__(self, width, count, dropout):
        super().__init__()
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.empty(3 * width))
        self.out_proj = nn.Linear(width, width)
        self.count, self.dropout = count, dropout

    def forward(self, query, key, value, bias):
        weights, offsets = self.in_proj_weight.chunk(3), self.in_proj_bias.chunk(3)
        q, k, v = (heads(F.linear(x, w, b), self.count) for x, w, b in zip((query, key, value), weights, offsets))
        dropout = self.dropout if self.training else 0.0
        return self.out_proj(joined(F.scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=dropout)))


class Mlp(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        return self.layers[-1](x)


class InputLayer(nn.Module):
    def __init__(self, wide, width, dropout, last):
        super().__init__()
        self.LayerNorm = nn.LayerNorm(wide)
        self.net = nn.Sequential(nn.Dropout(dropout), nn.Linear(wide, width))
        self.last = last

    def forward(self, x):
        x = self.net(self.LayerNorm(x))
        return x if self.last else F.relu(x)


def input_layers(wide, size):
    first = InputLayer(wide, size["hidden"], size["input_dropout"], last=False)
    return nn.Sequential(first, InputLayer(size["hidden"], size["hidden"], size["input_dropout"], last=True))


class Feed(nn.Module):
    """The parts that every transformer layer has."""

    def __init__(self, size, norms, prelu):
        super().__init__()
        width, ffn = size["hidden"], size["ffn"]
        self.linear1, self.linear2 = nn.Linear(width, ffn), nn.Linear(ffn, width)
        for number in range(1, norms + 1):
            setattr(self, f"norm{number}", nn.LayerNorm(width))
        self.activation = nn.PReLU() if prelu else nn.ReLU()
        self.drop = nn.Dropout(size["dropout"])

    def feed(self, x):
        return self.drop(self.linear2(self.drop(self.activation(self.linear1(x)))))


class EncoderLayer(Feed):
    def __init__(self, size, prelu):
        super().__init__(size, 2, prelu)
        self.self_attn = Attention(size["hidden"], size["heads"], size["dropout"])

    def forward(self, x, place, bias):
        seen = x + place
        x = self.norm1(x + self.drop(self.self_attn(seen, seen, x, bias)))
        return self.norm2(x + self.feed(x))


class CrossLayer(Feed):
    """Clips look at words; the norm stands inside the branch."""

    def __init__(self, size):
        super().__init__(size, 2, prelu=True)
        self.self_attn = Attention(size["hidden"], size["heads"], size["dropout"])

    def forward(self, clips, place, words, bias):
        u = clips + self.drop(self.self_attn(clips + place, words, words, bias))
        return self.norm2(u + self.feed(self.norm1(u)))


class PlainDecoderLayer(Feed):
    def __init__(self, size):
        super().__init__(size, 3, prelu=False)
        self.self_attn = Attention(size["hidden"], size["heads"], size["dropout"])
        self.multihead_attn = Attention(size["hidden"], size["heads"], size["dropout"])

    def forward(self, y, queries, memory, place, bias):
        seen = y + queries
        y = self.norm1(y + self.drop(self.self_attn(seen, seen, y, None)))
        y = self.norm2(y + self.drop(self.multihead_attn(y + queries, memory + place, memory, bias)))
        return self.norm3(y + self.feed(y))


class OutProjection(nn.Module):
    """An attention whose inputs are projected elsewhere."""

    def __init__(self, width):
        super().__init__()
        self.out_proj = nn.Linear(width, width)


class AnchoredDecoderLayer(Feed):
    def __init__(self, size, first):
        super().__init__(size, 3, prelu=True)
        width = size["hidden"]
        names = ["sa_qcontent", "sa_qpos", "sa_kcontent", "sa_kpos", "sa_v"]
        names += ["ca_qcontent", "ca_kcontent", "ca_v", "ca_kpos", "ca_qpos_sine"] + ["ca_qpos"] * first
        for name in names:
            setattr(self, f"{name}_proj", nn.Linear(width, width))
        self.self_attn, self.cross_attn = OutProjection(width), OutProjection(width)
        self.count, self.rate, self.first = size["heads"], size["dropout"], first

    def attend(self, q, k, v, bias):
        dropout = self.rate if self.training else 0.0
        return joined(F.scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=dropout))

    def forward(self, y, place, sine, memory, memory_place, bias):
        q = heads(self.sa_qcontent_proj(y) + self.sa_qpos_proj(place), self.count)
        k = heads(self.sa_kcontent_proj(y) + self.sa_kpos_proj(place), self.count)
        own = self.attend(q, k, heads(self.sa_v_proj(y), self.count), None)
        y = self.norm1(y + self.drop(self.self_attn.out_proj(own)))
        q, k, along = self.ca_qcontent_proj(y), self.ca_kcontent_proj(memory), self.ca_kpos_proj(memory_place)
        if self.first:
            q, k = q + self.ca_qpos_proj(place), k + along
        q = torch.cat([heads(q, self.count), heads(self.ca_qpos_sine_proj(sine), self.count)], -1)
        k = torch.cat([heads(k, self.count), heads(along, self.count)], -1)
        seen = self.attend(q, k, heads(self.ca_v_proj(memory), self.count), bias)
        y = self.norm2(y + self.drop(self.cross_attn.out_proj(seen)))
        return self.norm3(y + self.feed(y))


class Stack(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)


class PlainDecoder(Stack):
    def __init__(self, size):
        super().__init__(PlainDecoderLayer(size) for _ in range(size["decoder_layers"]))
        self.norm = nn.LayerNorm(size["hidden"])


class AnchoredDecoder(Stack):
    def __init__(self, size):
        width = size["hidden"]
        super().__init__(AnchoredDecoderLayer(size, number == 0) for number in range(size["decoder_layers"]))
        self.norm = nn.LayerNorm(width)
        self.ref_point_head, self.query_scale = Mlp([width] * 3), Mlp([width] * 3)
        self.ref_anchor_head, self.bbox_embed = Mlp([width, width, 1]), Mlp([width, width, width, 2])
        self.width = width

    def forward(self, anchors, memory, place, bias):
        """Normed states and the anchors that entered each layer."""
        y = memory.new_zeros(*anchors.shape[:2], self.width)
        state, before, states, entered = anchors, anchors, [], []
        for number, layer in enumerate(self.layers):
            code = torch.cat([sine(2 * math.pi * state[..., i], self.width // 2) for i in (0, 1)], -1)
            scaled = code if number == 0 else code * self.query_scale(y)
            scaled = scaled * (torch.sigmoid(self.ref_anchor_head(y)) / state[..., 1:])
            y = layer(y, self.ref_point_head(code), scaled, memory, place, bias)
            states.append(self.norm(y))
            entered.append(before)
            if number + 1 < len(self.layers):
                before = torch.sigmoid(self.bbox_embed(y) + logit(state))
                state = before.detach()
        return states, entered


def logit(x):
    x = x.clamp(0, 1)
    return torch.log(x.clamp(min=1e-3) / (1 - x).clamp(min=1e-3))


def sine(x, width):
    """Sines on even and cosines on odd channels of x [...]."""
    channel = torch.arange(width, device=x.device)
    angle = x[..., None] / 10000 ** (2 * (channel // 2) / width)
    return torch.where(channel % 2 == 0, angle.sin(), angle.cos())


def place_code(real, width):
    place = real.cumsum(1)
    return sine(2 * math.pi * place / (place[:, -1:] + 1e-6), width)


class SetModel(nn.Module):
    """What both share: projections, heads and the losses of a set."""

    def __init__(self, size):
        super().__init__()
        width = size["hidden"]
        self.input_vid_proj = input_layers(size["visual"], size)
        self.input_txt_proj = input_layers(size["words"], size)
        self.class_embed, self.span_embed = nn.Linear(width, 2), Mlp([width, width, width, 2])
        self.transformer, self.size = nn.Module(), size

    def layer(self, states, anchors):
        spans = self.span_embed(states)
        return self.class_embed(states), torch.sigmoid(spans if anchors is None else spans + logit(anchors))

    def set_loss(self, layers, windows):
        return sum(layer_loss(logits, spans, windows) for logits, spans in layers)


def ends(spans):
    return spans[..., 0] - spans[..., 1] / 2, spans[..., 0] + spans[..., 1] / 2


def giou(a, b):
    """Generalised overlap of [.., 2] spans given as centre and width, broadcast."""
    (start_a, end_a), (start_b, end_b) = ends(a), ends(b)
    inter = (torch.minimum(end_a, end_b) - torch.maximum(start_a, start_b)).clamp(min=0)
    union = (end_a - start_a) + (end_b - start_b) - inter
    hull = torch.maximum(end_a, end_b) - torch.minimum(start_a, start_b)
    return inter / union - (hull - union) / hull


@torch.no_grad()
def match(logits, spans, windows):
    """Rows (sample, query) and their windows: all samples against all windows at once, one transfer, then SciPy."""
    counts = [len(of_sample) for of_sample in windows]
    every = torch.cat(windows)
    flat = spans.flatten(0, 1)
    cost = COST["span"] * torch.cdist(flat, every, p=1) - COST["giou"] * giou(flat[:, None], every[None])
    cost = cost - COST["label"] * logits.softmax(-1)[..., 0].flatten()[:, None]
    cost = cost.view(*spans.shape[:2], -1).cpu()
    samples, queries, targets, first = [], [], [], 0
    for sample, part in enumerate(cost.split(counts, -1)):
        rows, columns = linear_sum_assignment(part[sample])
        samples += [sample] * len(rows)
        queries += rows.tolist()
        targets += (columns + first).tolist()
        first += counts[sample]
    place = lambda numbers: torch.tensor(numbers, device=spans.device)
    return place(samples), place(queries), every[place(targets)]


def layer_loss(logits, spans, windows):
    samples, queries, wanted = match(logits, spans, windows)
    found = spans[samples, queries]
    labels = torch.ones(logits.shape[:2], dtype=torch.long, device=logits.device)
    labels[samples, queries] = 0
    entropy = F.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
    label = (entropy * torch.where(labels == 0, 1.0, BACKGROUND)).mean()
    overlap = (1 - giou(found, wanted)).mean()
    return WEIGHT["span"] * F.l1_loss(found, wanted) + WEIGHT["giou"] * overlap + WEIGHT["label"] * label


def margin_loss(scores, good, bad):
    gap = MARGIN + scores.gather(1, bad) - scores.gather(1, good)
    return gap.clamp(min=0).sum() / good.numel() * 2


def rank_loss(scores, labels, real):
    scores = torch.where(real > 0, scores, -1e3)
    z = scores / TAU
    z = z - z.max(1, keepdim=True).values
    chance = z - torch.log(z.exp().sum(1, keepdim=True) + 1e-6)
    total = 0.0
    for level in range(1, LEVELS):
        positive = (labels >= level).float()
        row = -(positive * chance * real).sum(1) / (positive.sum(1) + 1e-6)
        total = total + row.mean()
    return total / LEVELS


class MomentDetr(SetModel):
    def __init__(self, size):
        super().__init__(size)
        self.transformer.encoder = Stack(EncoderLayer(size, prelu=False) for _ in range(size["encoder_layers"]))
        self.transformer.decoder = PlainDecoder(size)
        self.query_embed = nn.Embedding(size["proposals"], size["hidden"])
        self.saliency_proj = nn.Linear(size["hidden"], 1)

    def forward(self, batch):
        clips, words = self.input_vid_proj(batch["video"]), self.input_txt_proj(batch["text"])
        place = torch.cat([place_code(batch["video_mask"], clips.shape[2]), torch.zeros_like(words)], 1)
        bias = hide(torch.cat([batch["video_mask"], batch["text_mask"]], 1))
        memory = torch.cat([clips, words], 1)
        for layer in self.transformer.encoder.layers:
            memory = layer(memory, place, bias)
        queries = self.query_embed.weight.expand(len(clips), -1, -1)
        y, layers = torch.zeros_like(queries), []
        for layer in self.transformer.decoder.layers:
            y = layer(y, queries, memory, place, bias)
            layers.append(self.layer(self.transformer.decoder.norm(y), None))
        return layers, self.saliency_proj(memory[:, : clips.shape[1]]).squeeze(2)

    def loss(self, batch):
        layers, saliency = self(batch)
        return self.set_loss(layers, batch["windows"]) + margin_loss(saliency, batch["good"], batch["bad"])


class QdDetr(SetModel):
    def __init__(self, size):
        super().__init__(size)
        width = size["hidden"]
        self.transformer.t2v_encoder = Stack(CrossLayer(size) for _ in range(size["encoder_layers"]))
        self.transformer.encoder = Stack(EncoderLayer(size, prelu=True) for _ in range(size["encoder_layers"]))
        self.transformer.decoder = AnchoredDecoder(size)
        self.query_embed = nn.Embedding(size["proposals"], 2)
        self.global_rep_token, self.global_rep_pos = nn.Parameter(torch.empty(width)), nn.Parameter(torch.empty(width))
        self.saliency_proj1, self.saliency_proj2 = nn.Linear(width, width), nn.Linear(width, width)
        # The published mask mixes the samples of a batch; only the fixture wants it.
        self.tiled = False

    def word_bias(self, clip_mask, word_mask):
        bias = hide(word_mask)
        if not self.tiled:
            return bias
        batch, count = len(clip_mask), self.size["heads"]
        both = (clip_mask[:, :, None] == 0) & (word_mask[:, None, :] == 0)
        rows = torch.arange(batch * count, device=bias.device) % batch
        mixed = both[rows].view(batch, count, *both.shape[1:])
        return bias.expand_as(mixed).masked_fill(mixed, float("-inf"))

    def encode(self, batch, clips, place, words, word_mask):
        bias = self.word_bias(batch["video_mask"], word_mask)
        for layer in self.transformer.t2v_encoder.layers:
            clips = layer(clips, place, words, bias)
        start = lambda token, rest: torch.cat([token.expand(len(rest), 1, -1), rest], 1)
        x, places = start(self.global_rep_token, clips), start(self.global_rep_pos, place)
        bias = hide(F.pad(batch["video_mask"], (1, 0), value=1.0))
        for layer in self.transformer.encoder.layers:
            x = layer(x, places, bias)
        token, memory = x[:, :1], x[:, 1:]
        saliency = (self.saliency_proj1(memory) * self.saliency_proj2(token)).sum(2) / math.sqrt(x.shape[2])
        return memory, saliency

    def start(self, batch):
        clips, words = self.input_vid_proj(batch["video"]), self.input_txt_proj(batch["text"])
        return clips, words, place_code(batch["video_mask"], clips.shape[2])

    def decode(self, batch, memory, place):
        anchors = torch.sigmoid(self.query_embed.weight).expand(len(memory), -1, -1)
        states, entered = self.transformer.decoder(anchors, memory, place, hide(batch["video_mask"]))
        return [self.layer(*pair) for pair in zip(states, entered)]

    def forward(self, batch):
        clips, words, place = self.start(batch)
        memory, saliency = self.encode(batch, clips, place, words, batch["text_mask"])
        return self.decode(batch, memory, place), saliency

    def loss(self, batch):
        clips, words, place = self.start(batch)
        memory, saliency = self.encode(batch, clips, place, words, batch["text_mask"])
        other = (words.roll(-1, 0), batch["text_mask"].roll(-1, 0))
        _, wrong = self.encode(batch, clips, place, *other)
        layers, real = self.decode(batch, memory, place), batch["video_mask"]
        rank = rank_loss(
            torch.cat([saliency, wrong], 1),
            torch.cat([batch["totals"], torch.zeros_like(batch["totals"])], 1),
            torch.cat([real, real], 1),
        )
        pair = (F.softplus(wrong) * real).sum(1).mean()
        return self.set_loss(layers, batch["windows"]) + margin_loss(saliency, batch["good"], batch["bad"]) + rank + pair


MODELS = {"moment-detr": MomentDetr, "qd-detr": QdDetr}
