"""Opens a 2D-TAN that `cuemark models export --to pytorch` wrote, and holds our answers to what PyTorch computes.

    python tan2d_reader.py EXPORT.pt FEATURES STREAM WORDS.txt TRUTH.jsonl PREDICTIONS.jsonl PRE_CLIPS CLIPS

FEATURES is a store of ours, or a folder of VIDEO.npy, one row a second; WORDS.txt is a GloVe file; maps have one scale (16 clips or
fewer). Prints the largest difference between a score of ours and the map's, over all answers, and exits 1 where it is over 1e-5 or there
is no answer; `network` is the whole model.
"""

import json
import pathlib
import re
import sys

import numpy as np
import torch
import torch.nn.functional as F

from torch_steps import read_safetensors

ALLOWED = 1e-5


def network(w, visual, words, clips):
    """Scores [clips, clips] of one video [pre_clips, width] and one sentence [words, width]; w: tensors by the authors' names."""
    x = F.relu(F.conv1d(visual.T[None], w["frame_layer.vis_conv.weight"], w["frame_layer.vis_conv.bias"]))
    x = F.avg_pool1d(x, visual.shape[0] // clips)
    hidden = x.shape[1]
    mask = torch.ones(clips, clips).triu()[None, None]
    cells = torch.stack([torch.stack([x[0, :, min(i, j) : j + 1].amax(1) for j in range(clips)], 1) for i in range(clips)], 1)
    names = [name for name in w if name.startswith("fusion_layer.textual_encoder.weight_hh_l")]
    lstm = torch.nn.LSTM(words.shape[1], hidden, len(names), batch_first=True)
    lstm.load_state_dict({name.split("textual_encoder.")[1]: t for name, t in w.items() if "textual_encoder." in name})
    query = F.linear(lstm(words[None])[0][:, -1], w["fusion_layer.tex_linear.weight"], w["fusion_layer.tex_linear.bias"])
    x = F.conv2d(cells[None] * mask, w["fusion_layer.vis_conv.weight"], w["fusion_layer.vis_conv.bias"])
    x = F.normalize(x * query[:, :, None, None], dim=1) * mask
    layers = sorted({int(name.split(".")[2]) for name in w if name.startswith("map_layer.convs.")})
    seen = mask
    for layer in layers:
        weight, bias = w[f"map_layer.convs.{layer}.weight"], w[f"map_layer.convs.{layer}.bias"]
        k = weight.shape[-1]
        padding = (k - 1) * len(layers) // 2 if layer == 0 else 0
        count = F.conv2d(seen, torch.ones(1, 1, k, k), padding=padding).round()
        seen = (count > 0).float()
        x = F.relu(F.conv2d(x, weight, bias, padding=padding)) * torch.where(count > 0, 1 / count.clamp(min=1), 0 * count)
    return torch.sigmoid(F.conv2d(x, w["pred_layer.weight"], w["pred_layer.bias"]) * mask)[0, 0]


def pre_clips(rows, wanted):
    """Rows of length 1, brought to a number by rounding boundaries."""
    rows, count = F.normalize(rows.float(), dim=1), len(rows)
    edges = [min(int(np.rint(np.float32(i) * np.float32(count) / np.float32(wanted))), count - 1) for i in range(wanted + 1)]
    return torch.stack([rows[a:b].mean(0) if a < b else rows[a] for a, b in zip(edges, edges[1:])])


def read_features(folder, stream):
    """Rows by video."""
    shards = pathlib.Path(folder).glob("*.safetensors")
    tensors = {name: rows for shard in shards for name, rows in read_safetensors(shard).items()}
    files = pathlib.Path(folder).glob("*.npy")
    return {
        **{name.removeprefix(stream + "/"): rows for name, rows in tensors.items() if name.startswith(stream + "/")},
        **{file.stem: torch.from_numpy(np.load(file)) for file in files},
    }


def main():
    export, features, stream, words_file, truth, answers, before, clips = sys.argv[1:]
    features = read_features(features, stream)
    weights, before, clips = torch.load(export), int(before), int(clips)
    vectors = {line.split(" ")[0]: torch.tensor([float(v) for v in line.split(" ")[1:]]) for line in open(words_file)}
    answers = {json.loads(line)["qid"]: json.loads(line) for line in open(answers)}
    worst, compared = 0.0, 0
    with torch.no_grad():
        for line in open(truth):
            asked = json.loads(line)
            found = answers[asked["qid"]]
            sentence = torch.stack([vectors[word] for word in re.findall(r"\w+", asked["query"].lower())])
            rows = features[asked["video"]]
            scores = network(weights, pre_clips(rows, before), sentence, clips)
            second = len(rows) / clips  # rows are a second each
            for answer in found["predictions"]:
                start, end = answer["span"]
                score = scores[round(start / second), round(end / second) - 1].item()
                worst, compared = max(worst, abs(answer["score"] - score)), compared + 1
    print(f"{compared} answers, largest difference {worst:.2e}")
    return compared > 0 and worst <= ALLOWED


sys.exit(0 if main() else 1)
