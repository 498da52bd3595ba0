"""The other side of `cargo xtask bench text`: a training step and one answer of MMN with DistilBERT in PyTorch.

usage: mmn_step.py STEPS DEVICE THREADS FILE.safetensors
       mmn_step.py check FIXTURE.safetensors

Written from the card of MMN, dense as its authors' network is, with PyTorch's fused attention in DistilBERT. The first form
starts from the parameters and the batch that our side (`crates/cuemark-models/examples/text_step.rs`) wrote, and prints one
JSON line as that does. The second holds the network to the reference's fixture, losses and gradients included, and exits 1
when it is off.
"""

import json
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

from torch_steps import answering, prepare, read_safetensors, step_of, tell, timed
from train_step import fill_steps

BETAS, DECAY, LIMIT, TEXT_RATE = (0.9, 0.99), 1e-5, 5.0, 0.1


class Layer(nn.Module):
    def __init__(self, dim, heads, ffn, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.attention = nn.ModuleDict({name: nn.Linear(dim, dim) for name in ("q_lin", "k_lin", "v_lin", "out_lin")})
        self.sa_layer_norm = nn.LayerNorm(dim, eps=1e-12)
        self.ffn = nn.ModuleDict({"lin1": nn.Linear(dim, ffn), "lin2": nn.Linear(ffn, dim)})
        self.output_layer_norm = nn.LayerNorm(dim, eps=1e-12)

    def forward(self, x, seen):
        batch, length, dim = x.shape
        q, k, v = (
            self.attention[name](x).view(batch, length, self.heads, -1).transpose(1, 2)
            for name in ("q_lin", "k_lin", "v_lin")
        )
        dropped = self.dropout if self.training else 0.0
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, dropout_p=dropped)
        found = self.attention["out_lin"](found.transpose(1, 2).reshape(batch, length, dim))
        x = self.sa_layer_norm(found + x)
        thought = self.ffn["lin2"](F.gelu(self.ffn["lin1"](x)))
        return self.output_layer_norm(F.dropout(thought, self.dropout, self.training) + x)


class DistilBert(nn.Module):
    def __init__(self, size):
        super().__init__()
        dim, self.dropout = size["dim"], size["dropout"]
        self.embeddings = nn.ModuleDict({
            "word_embeddings": nn.Embedding(size["words"], dim),
            "position_embeddings": nn.Embedding(size["positions"], dim),
            "LayerNorm": nn.LayerNorm(dim, eps=1e-12),
        })
        layers = (Layer(dim, size["heads"], size["ffn"], self.dropout) for _ in range(size["text_layers"]))
        self.transformer = nn.ModuleDict({"layer": nn.ModuleList(layers)})

    def forward(self, tokens, mask):
        parts = self.embeddings
        places = parts["position_embeddings"].weight[: tokens.shape[1]]
        x = parts["LayerNorm"](parts["word_embeddings"](tokens) + places)
        x = F.dropout(x, self.dropout, self.training)
        for layer in self.transformer["layer"]:
            x = layer(x, mask[:, None, None, :])
        return x


class TextEncoder(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.bert, self.layernorm = DistilBert(size), nn.LayerNorm(size["dim"])
        self.fc_out1, self.fc_out2 = nn.Linear(size["dim"], size["joint"]), nn.Linear(size["dim"], size["joint"])

    def forward(self, tokens, lengths):
        mask = torch.arange(tokens.shape[1], device=tokens.device)[None] < lengths[:, None]
        hidden = self.bert(tokens, mask) * mask[..., None]
        mean = self.layernorm(hidden.sum(1) / lengths[:, None])
        return self.fc_out1(mean), self.fc_out2(mean)  # overlap, matching


class MapEncoder(nn.Module):
    def __init__(self, size, mask):
        super().__init__()
        hidden, kernel, layers = size["hidden"], size["kernel"], size["layers"]
        pads = [(kernel - 1) * layers // 2] + [0] * (layers - 1)
        self.convs = nn.ModuleList(nn.Conv2d(hidden, hidden, kernel, padding=pad) for pad in pads)
        self.bn = nn.ModuleList(nn.BatchNorm2d(hidden) for _ in pads)
        self.conv1x1_contrastive = nn.Conv2d(hidden, size["joint"], 1)
        self.conv1x1_iou = nn.Conv2d(hidden, size["joint"], 1)
        self.weights, seen = [], mask[None, None]
        for pad in pads:
            count = torch.round(F.conv2d(seen, torch.ones(1, 1, kernel, kernel, device=mask.device), padding=pad))
            seen = (count > 0).float()
            self.weights.append(seen / count.clamp(min=1))

    def forward(self, x):
        for conv, norm, weight in zip(self.convs, self.bn, self.weights):
            x = F.relu(norm(conv(x))) * weight
        return self.conv1x1_iou(x), self.conv1x1_contrastive(x)


class Mmn(nn.Module):
    def __init__(self, size, device):
        super().__init__()
        self.size, self.clips = size, size["clips"]
        self.steps, mask = fill_steps(self.clips, size["counts"])
        self.mask = mask.to(device)
        self.cells = self.mask.flatten().nonzero().squeeze(1)
        self.featpool = nn.ModuleDict({"conv": nn.Conv1d(size["visual"], size["hidden"], 1)})
        self.proposal_conv = MapEncoder(size, self.mask)
        self.text_encoder = TextEncoder(size)

    def moments(self, visual):
        """[videos, joint, N, N] of the overlap and of the matching space."""
        clips = F.relu(self.featpool["conv"](visual.transpose(1, 2)))
        average = clips.shape[2] // self.clips
        clips = F.avg_pool1d(clips, average, average)
        videos, hidden, count = clips.shape
        map_ = clips.new_zeros(videos, hidden, count, count)
        along = torch.arange(count, device=clips.device)
        map_[:, :, along, along] = clips
        for offset, stride, kernel, advance in self.steps:
            clips = F.max_pool1d(clips, kernel, advance)
            starts = torch.arange(0, count - offset, stride, device=clips.device)
            map_[:, :, starts, starts + offset] = clips
        return self.proposal_conv(map_)

    def valid(self, map_):
        """Unit vectors of the valid cells, [videos, cells, joint]."""
        return F.normalize(map_.flatten(2)[:, :, self.cells].transpose(1, 2), dim=2)

    def forward(self, batch):
        """Logits of the overlap of each sentence with the cells of its own video, and cosines with the cells of all."""
        overlap, matching = (self.valid(map_) for map_ in self.moments(batch["visual"]))
        s_iou, s_con = (F.normalize(s, dim=1) for s in self.text_encoder(batch["tokens"], batch["lengths"]))
        logits = 10 * torch.bmm(overlap[batch["video"]], s_iou[..., None]).squeeze(2)
        return logits, torch.einsum("sd,vcd->svc", s_con, matching)

    def ious(self, spans):
        """Overlap of every valid cell with each span (fractions of the video), [sentences, cells]."""
        start = torch.div(self.cells, self.clips, rounding_mode="floor") / self.clips
        end = (self.cells % self.clips + 1) / self.clips
        first, last = spans[:, :1], spans[:, 1:]
        overlap = (torch.minimum(end, last) - torch.maximum(start, first)).clamp(min=0)
        return overlap / (torch.maximum(end, last) - torch.minimum(start, first))

    def losses(self, batch, ious):
        size, own = self.size, batch["video"]
        logits, cosines = self(batch)
        wanted = ((ious - size["min_iou"]) / (size["max_iou"] - size["min_iou"])).clamp(0, 1)
        bce = F.binary_cross_entropy_with_logits(logits, wanted)
        # Each sentence's moments with every sentence.
        sentences, videos, cells = cosines.shape
        top = ious.topk(size["top_k"], 1).indices
        columns = (own[:, None] * cells + top).flatten()
        among = cosines.flatten(1)[:, columns].T.view(sentences, -1, sentences)
        itself = torch.eye(sentences, device=ious.device)[:, None]
        positive = (among * itself).sum(2) - size["margin"]
        first, last = batch["spans"][:, None], batch["spans"][None]
        common = (torch.minimum(first[..., 1], last[..., 1]) - torch.maximum(first[..., 0], last[..., 0])).clamp(min=0)
        hull = torch.maximum(first[..., 1], last[..., 1]) - torch.minimum(first[..., 0], last[..., 0])
        same = (own[:, None] == own[None]) & (common / hull >= size["sentence_iou"])
        counted = 1 - (same & ~torch.eye(sentences, dtype=torch.bool, device=ious.device)).float()
        to_sentences = ((among - size["margin"] * itself) / size["tau"]).exp() * counted[:, None]
        to_sentences = to_sentences.sum(2).log() - positive / size["tau"]
        # Each sentence with every moment; those that overlap the span are zeroed, as published.
        of_own = cosines[torch.arange(sentences, device=ious.device), own] * (ious < size["negative_iou"])
        same_video = (of_own / size["tau"]).exp().sum(1)
        others = (cosines / size["tau"]).exp().sum(2)
        others = (others * (torch.arange(videos, device=ious.device)[None] != own[:, None])).sum(1)
        everything = (positive / size["tau"]).exp() + (same_video + others)[:, None] + size["eps"]
        to_moments = everything.log() - positive / size["tau"]
        return bce, to_sentences.mean(), to_moments.mean()

    def loss(self, batch):
        bce, to_sentences, to_moments = self.losses(batch, self.ious(batch["spans"]))
        return bce + self.size["weight"] * (to_sentences + to_moments)

    def answer(self, batch):
        """Cells of each sentence's own video, best first, and their scores."""
        logits, cosines = self(batch)
        own = cosines[torch.arange(len(logits), device=logits.device), batch["video"]]
        scores = (0.5 * own + 0.5).clamp(min=0).sqrt() * logits.sigmoid()
        return scores.sort(dim=1, descending=True, stable=True)


def size_of(parameters, more):
    """Sizes of these parameters; `more` says what shapes do not."""
    bert = "text_encoder.bert."
    shape = lambda name: parameters[name].shape
    layers = lambda prefix, place: len({name.split(".")[place] for name in parameters if name.startswith(prefix)})
    kernel = shape("proposal_conv.convs.0.weight")[2]
    return {
        "visual": shape("featpool.conv.weight")[1], "hidden": shape("featpool.conv.weight")[0], "kernel": kernel,
        "layers": layers("proposal_conv.convs.", 2), "joint": shape("text_encoder.fc_out1.weight")[0],
        "words": shape(bert + "embeddings.word_embeddings.weight")[0],
        "positions": shape(bert + "embeddings.position_embeddings.weight")[0],
        "dim": shape(bert + "embeddings.LayerNorm.weight")[0],
        "ffn": shape(bert + "transformer.layer.0.ffn.lin1.weight")[0],
        "text_layers": layers(bert + "transformer.layer.", 4), "tau": 0.1, "eps": 1e-6, "top_k": 1, "dropout": 0.1,
        "min_iou": 0.5, "max_iou": 1.0, "negative_iou": 0.5, "sentence_iou": 0.5, **more,
    }


def network(parameters, size, device):
    model = Mmn(size, device)
    counters = {name: value for name, value in model.state_dict().items() if name.endswith("num_batches_tracked")}
    model.load_state_dict({**parameters, **counters})
    return model.to(device)


def check(path):
    tensors = read_safetensors(path)
    about = json.loads(pathlib.Path(path).with_suffix(".json").read_text())
    named = lambda prefix: {key[len(prefix) :]: value for key, value in tensors.items() if key.startswith(prefix)}
    given, wanted, parameters, config = named("in."), named("grad."), named("param."), about["config"]
    loss = config["loss"]
    size = size_of(parameters, {
        "clips": config["clips"], "counts": config["pooling_counts"], "heads": config["distilbert"]["heads"],
        "margin": loss["margin"], "weight": loss["contrastive_weight"], "top_k": loss["top_k"],
    })
    model = network(parameters, size, torch.device("cpu")).eval()
    counts = given["sent_per_video"]
    batch = {
        "visual": given["visual"], "tokens": given["tokens"], "lengths": given["token_lens"], "spans": given["moments"],
        "video": torch.arange(len(counts)).repeat_interleave(counts),
    }
    ious = given["iou2d"].flatten(1)[:, model.cells]
    parts = model.losses(batch, ious)
    total = parts[0] + size["weight"] * (parts[1] + parts[2])
    total.backward()
    logits, cosines = model(batch)
    own = cosines[torch.arange(len(logits)), batch["video"]]
    here = lambda name: tensors[name].flatten(1)[:, model.cells]
    off = {
        "score_iou": (logits.sigmoid() - here("out.score_iou")).abs().max().item(),
        "score_contrastive": (own - here("out.score_contrastive")).abs().max().item(),
    }
    for name, value in zip(("iou_bce", "vid", "sent", "total"), (*parts, total)):
        off[name] = abs(value.item() - tensors["loss." + name].item()) / abs(tensors["loss." + name].item())
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
    given = {key[3:]: tensors.pop(key) for key in list(tensors) if key.startswith("in.")}
    about = json.loads(bytes(given.pop("about").tolist()))
    model = network(tensors, size_of(tensors, about), device)
    batch = {key: value.to(device) for key, value in given.items()}
    batch["tokens"], batch["video"] = batch["tokens"].long(), batch["video"].long()
    model.eval()
    with torch.no_grad():
        loss = model.loss(batch).item()
    first = given["video"] == 0
    one = {
        "visual": given["visual"][:1], "tokens": given["tokens"][first][:1].long(), "lengths": given["lengths"][first][:1],
        "video": torch.zeros(1, dtype=torch.long),
    }

    @torch.no_grad()
    def answer():
        scores, cells = model.answer({key: value.to(device) for key, value in one.items()})
        return scores.cpu(), cells.cpu()

    text = [value for name, value in model.named_parameters() if name.startswith("text_encoder.bert.")]
    rest = [value for name, value in model.named_parameters() if not name.startswith("text_encoder.bert.")]
    rate = about["rate"]
    groups = [{"params": text, "lr": rate * TEXT_RATE}, {"params": rest, "lr": rate}]
    optimizer = torch.optim.AdamW(groups, betas=BETAS, weight_decay=DECAY)

    train = step_of(model, optimizer, lambda: model.loss(batch), LIMIT)
    inference = answering(answer, steps, device)
    model.train()
    training = timed(train, steps, device)
    tell(model, inference, training, loss, device)


if __name__ == "__main__":
    if sys.argv[1:2] == ["check"]:
        sys.exit(0 if all([check(path) for path in sys.argv[2:]]) else 1)
    steps, device, threads, path = sys.argv[1:]
    measure(int(steps), device, int(threads), path)
