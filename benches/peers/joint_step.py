"""The other side of `cargo xtask bench joint`: a training step and one answer of Moment-DETR and QD-DETR in PyTorch.

usage: joint_step.py MODEL STEPS DEVICE THREADS FILE.safetensors
       joint_step.py check FIXTURE.safetensors …

The first form starts from the parameters and the batch that our side (`crates/cuemark-models/examples/joint_step.rs`) wrote,
and prints one JSON line as that does. The second holds the networks to the reference's fixtures, losses and gradients
included, and exits 1 when one is off.
"""

import json
import pathlib
import sys

import torch

from joint_models import MODELS
from torch_steps import answering, prepare, read_safetensors, step_of, tell, timed

RATE, DECAY, LIMIT = 1e-4, 1e-4, 0.1


def network(name, parameters, size):
    model = MODELS[name](size)
    wanted = set(model.state_dict())
    model.load_state_dict({key: value for key, value in parameters.items() if key in wanted})
    return model


def layers(parameters, stack):
    return len({key.split(".")[3] for key in parameters if key.startswith(f"transformer.{stack}.layers.")})


def size_of(parameters, heads, dropout, input_dropout):
    width = parameters["class_embed.weight"].shape[1]
    return {
        "hidden": width, "heads": heads, "dropout": dropout, "input_dropout": input_dropout,
        "ffn": parameters["transformer.encoder.layers.0.linear1.weight"].shape[0],
        "visual": parameters["input_vid_proj.0.LayerNorm.weight"].shape[0],
        "words": parameters["input_txt_proj.0.LayerNorm.weight"].shape[0],
        "proposals": parameters["query_embed.weight"].shape[0],
        "encoder_layers": layers(parameters, "encoder"), "decoder_layers": layers(parameters, "decoder"),
    }


def check(path):
    tensors = read_safetensors(path)
    about = json.loads(pathlib.Path(path).with_suffix(".json").read_text())
    named = lambda prefix: {key[len(prefix) :]: value for key, value in tensors.items() if key.startswith(prefix)}
    given, wanted, parameters = {**named("out."), **named("in.")}, named("grad."), named("param.")
    model = network(about["model"], parameters, size_of(parameters, about["config"]["nheads"], 0.0, 0.0))
    if about["model"] == "qd-detr":
        model.tiled = about["config"]["t2v_mask_order"] == "tiled"
    samples = len(given["src_vid"])
    batch = {
        "video": given["src_vid"], "video_mask": given["src_vid_mask"].float(),
        "text": given["src_txt"], "text_mask": given["src_txt_mask"].float(),
        "windows": [given[f"target_spans_{sample}"] for sample in range(samples)],
        "good": given["saliency_pos_labels"], "bad": given["saliency_neg_labels"],
    }
    if "saliency_all_labels" in given:
        batch["totals"] = given["saliency_all_labels"].float()
    model.train()
    loss = model.loss(batch)
    found, saliency = model(batch)
    # The contrastive option of Moment-DETR is off in the published runs and absent here; its fixture has it on.
    total = tensors["loss.total"].item()
    weights = about["config"]["loss_weights"]
    total -= sum(weights[k] * tensors[f"loss.{k}"].item() for k in weights if "contrastive" in k)
    logits, spans = found[-1]
    off = {
        "pred_logits": (logits - given["pred_logits"]).abs().max().item(),
        "pred_spans": (spans - given["pred_spans"]).abs().max().item(),
        "saliency": ((saliency - given["saliency_scores"]).abs() * batch["video_mask"]).max().item(),
        "total": abs(loss.item() - total) / abs(total),
    }
    loss.backward()
    if not any("contrastive" in key for key in weights):
        for name, parameter in model.named_parameters():
            if name in wanted and parameter.grad is not None:
                most = wanted[name].abs().max().item()
                gap = (parameter.grad - wanted[name]).abs().max().item()
                off["gradients"] = max(off.get("gradients", 0.0), gap / most if most else gap)
    allowed = {"gradients": about["tolerance"]["grad_rel"]}
    good = all(value <= allowed.get(key, 1e-4) for key, value in off.items())
    print(about["fixture"], "ok" if good else "OFF", json.dumps(off))
    return good


def measure(name, steps, device, threads, path):
    prepare(threads)
    device = torch.device(device)
    tensors = read_safetensors(path)
    given = {key[3:]: tensors.pop(key) for key in list(tensors) if key.startswith("in.")}
    model = network(name, tensors, size_of(tensors, int(given.pop("heads")), 0.1, 0.5)).to(device)
    counts = given.pop("window_counts").tolist()
    batch = {key: value.to(device) for key, value in given.items()}
    batch["windows"] = list(batch["windows"].split(counts))
    batch["good"], batch["bad"] = batch["good"].long(), batch["bad"].long()
    model.eval()
    with torch.no_grad():
        loss = model.loss(batch).item()
    one = {key: value[:1] for key, value in batch.items() if torch.is_tensor(value)}
    cpu_one = {key: value.cpu() for key, value in one.items()}

    @torch.no_grad()
    def answer():
        layers, saliency = model({key: value.to(device) for key, value in cpu_one.items()})
        logits, spans = layers[-1]
        scores = logits.softmax(-1)[..., 0]
        order = scores.argsort(dim=1, descending=True, stable=True)
        spans.gather(1, order[..., None].expand(-1, -1, 2)).cpu(), saliency.cpu()

    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)

    train = step_of(model, optimizer, lambda: model.loss(batch), LIMIT)
    inference = answering(answer, steps, device)
    model.train()
    training = timed(train, steps, device)
    tell(model, inference, training, loss, device)


if __name__ == "__main__":
    if sys.argv[1:2] == ["check"]:
        sys.exit(0 if all([check(path) for path in sys.argv[2:]]) else 1)
    name, steps, device, threads, path = sys.argv[1:]
    measure(name, int(steps), device, int(threads), path)
